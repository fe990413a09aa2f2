"""A launcher is a choice: it gets a folder and gives back a handle. One is defined here, far from the run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Literal

import psutil
import pytest

import workbench
from tests.run_folders import processes_of
from tests.tiny_runs import tiny_recipe, wait_until
from workbench.base.errors import RunError
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.client.run_list import runs
from workbench.launchers.create import create
from workbench.launchers.launched import Launched
from workbench.launchers.launcher import SUBMITTING_SECONDS, Handle, Launcher, launcher_named
from workbench.launchers.local import Inline, Local
from workbench.store.folder import RunFolder
from workbench.store.state import boot_id, lock_held, read_state, write_state

# Forks twice, closes everything, and goes elsewhere, as the daemon of a cluster does; nothing says what is started.
DAEMON = """
import os, sys, time
place, code, folder = sys.argv[1:]
if os.fork():
    os._exit(0)
os.setsid()
time.sleep(0.5)
os.chdir(place)
os.closerange(0, 256)
kept = {name: os.environ[name] for name in os.environ if name != "WORKBENCH_RUNS"}
os.execve(sys.executable, [sys.executable, "-m", "workbench.launchers.supervisor", folder], kept | {"PYTHONPATH": code})
"""


class Elsewhere(Launcher):
    """Starts the supervisor later, in another session and working folder, with no descriptor open."""

    kind: Literal["elsewhere"] = "elsewhere"
    place: str = "/"

    def check(self, recipe: Any) -> None:
        if recipe.seed == 13:
            raise RunError("seed 13 is not trained elsewhere")

    def submit(self, folder: RunFolder, resume: bool) -> Handle:
        code = str(Path(workbench.__file__).parents[1])
        subprocess.run([sys.executable, "-c", DAEMON, self.place, code, str(folder.path)], check=True)
        return {"job": folder.id, "until": time.time() + 60}

    def alive(self, handle: Handle) -> bool | None:
        # What a scheduler says: pending or running, until it finds nothing of the job.
        known = [each for each in psutil.process_iter() if handle["job"] in " ".join(_command(each))]
        return bool(known) or None

    def cancel(self, handle: Handle) -> None:
        for each in psutil.process_iter():
            if "workbench.launchers.supervisor" in _command(each) and handle["job"] in " ".join(_command(each)):
                each.send_signal(signal.SIGTERM)


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline() if process.status() != psutil.STATUS_ZOMBIE else []
    except psutil.Error:
        return []


@pytest.mark.process
def test_a_supervisor_needs_nothing_but_the_run_folder(corpus: Path, root: Path, tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    run = launch(tiny_recipe(corpus, 100_000), on=Elsewhere(place=str(tmp_path / "place")), runs_dir=root)
    assert Launched.read(run.folder).on == "elsewhere"
    assert (run.status, lock_held(run.folder)) == ("starting", False), "its job is pending"
    assert [each.id for each in runs(root)] == [run.id]
    wait_until(lambda: run.state.step >= 3 or run.final, 90, "the third step")
    assert run.status == "running", run.state.error
    (supervisor,) = processes_of(root, "workbench.launchers.supervisor")
    assert os.getsid(supervisor.pid) not in (os.getsid(0), os.getpid())
    assert supervisor.cwd() == os.getcwd(), "relative paths start where they did at the launch"
    with pytest.raises(RunError, match="there is nothing to resume"):
        run.resume(timeout=30)
    # Found again by whoever knows its launcher, and by whoever does not by the lock alone.
    for process in processes_of(root, "workbench.launchers.supervisor"):
        process.kill()
    wait_until(lambda: run.status == "lost", 30, "the loss")
    assert "PYTHONPATH" not in run.tail()
    assert "attempt 2" in Run(run.id, root).resume()
    assert run.status == "starting"
    wait_until(lambda: run.status == "running" or run.final, 90, "the second attempt")
    assert run.status == "running", run.state.error
    Elsewhere().cancel(Launched.read(run.folder).handle)
    assert run.wait(timeout=60)["state"] == "stopped"  # type: ignore[index]


@pytest.mark.process
def test_a_launch_that_is_started_twice_is_trained_once(corpus: Path, root: Path) -> None:
    run = launch(tiny_recipe(corpus, 20), on="elsewhere", runs_dir=root)
    Elsewhere().submit(run.folder, False)
    assert run.wait(timeout=120)["steps"] == 20  # type: ignore[index]
    Elsewhere().submit(run.folder, False)
    wait_until(lambda: not processes_of(root), 60, "the end of all")
    assert (run.status, run.state.attempt) == ("finished", 1)
    assert run.telemetry().series("loss")[0] == list(range(1, 21)), "every step once"


@pytest.fixture
def begun(corpus: Path, root: Path) -> RunFolder:
    """A run folder whose launcher was killed before it had started anything."""
    folder, lock = create(root, lambda draft: tiny_recipe(corpus), launcher=Local())
    Launched.here("local", root.parent).write(folder)
    os.close(lock)
    return folder


def test_a_launch_that_was_killed_is_lost_after_a_while_and_can_be_resumed(begun: RunFolder) -> None:
    run = Run(begun)
    assert run.status == "starting", "its supervisor may come"
    with pytest.raises(RunError, match="is starting, attempt 1: it needs no resume"):
        run.resume()
    with pytest.raises(RunError, match="is alive and cannot be deleted"):
        run.delete()
    launched = Launched.read(begun)
    Launched(**{**vars(launched), "time": launched.time - SUBMITTING_SECONDS}).write(begun)
    assert run.status == "lost"
    run.delete()


def test_what_a_local_handle_says(begun: RunFolder) -> None:
    me = psutil.Process()
    handle = {"pid": me.pid, "started": me.create_time(), "boot": "another"}
    assert Local().alive(handle) is None, "of another machine or boot nobody can tell"
    handle["boot"] = boot_id()
    assert Local().alive(handle) is True
    assert Local().alive({**handle, "started": 1.0}) is False, "its pid is another's by now"
    for damaged in ({}, {"pid": "x"}, {"boot": boot_id(), "pid": 1 << 30, "started": 0.0}):
        assert not Local().alive(damaged)
    write_state(begun, status="running")
    Launched.here("unknown", "/").write(begun, handle)
    assert Run(begun).status == "lost", "without its launcher the lock decides"
    assert read_state(begun).status == "running"


def test_launchers_are_found_by_name_and_their_knobs_are_checked(corpus: Path, root: Path) -> None:
    assert launcher_named("local", priority=3) == Local(priority=3)
    assert launcher_named(Inline(priority=1), wait=False) == Inline(priority=1, wait=False)
    assert launcher_named("local:processes=2,priority=1", priority=3) == Local(processes=2, priority=3)
    with pytest.raises(RunError, match=r"on: 'local:two' is not NAME:KNOB=VALUE,KNOB=VALUE"):
        launcher_named("local:two")
    with pytest.raises(RunError, match="on: unknown value 'mars'; legal: elsewhere, hand, inline, local, ray, slurm"):
        launcher_named("mars")
    with pytest.raises(
        RunError, match=r"launcher Local: priorty: .*; its knobs are kind, oversubscribe, priority, processes, wait"
    ):
        launcher_named("local", priorty=3)
    with pytest.raises(RunError, match="seed 13 is not trained"):
        launch(tiny_recipe(corpus).with_(seed=13), on="elsewhere", runs_dir=root)
    with pytest.raises(RunError, match="its knobs are kind, place"):
        launch(tiny_recipe(corpus), on="elsewhere", runs_dir=root, queue=False)
    assert list(root.iterdir()) == []
