"""A detached run outlives whoever launched it, and obeys strangers; an inline one leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from tests.run_folders import processes_of
from tests.tiny_runs import tiny_recipe, wait_until
from workbench.client.run import Run
from workbench.client.run_list import runs
from workbench.launchers.launched import Launched

LAUNCHER = """
import os, sys, time
from workbench.recipes.recipe import Recipe
from workbench.client.launch import launch
recipe, root, on, *ways = sys.argv[1:]
for os.environ["WORKBENCH_HOLD"] in ways:
    print(launch(Recipe.load(recipe), on=on, runs_dir=root, name="from <elsewhere>").id, flush=True)
time.sleep(600)
"""


def launch_elsewhere(
    recipe: Path, root: Path, on: str, ways: Sequence[str] = ("on",)
) -> tuple[subprocess.Popen[str], list[str]]:
    """Runs launched by another process, which then sleeps; returns that process and the runs' ids.

    Args:
        ways: value of $WORKBENCH_HOLD for each.
    """
    child = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, str(recipe), str(root), on, *ways],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert child.stdout is not None
    return child, [child.stdout.readline().strip() for _ in ways]


@pytest.mark.usefixtures("reports")
@pytest.mark.process
def test_a_run_outlives_its_launcher_and_obeys_a_stranger(corpus: Path, root: Path, tmp_path: Path) -> None:
    recipe = tiny_recipe(corpus, steps=100_000).save(tmp_path / "recipe.json")
    launcher, (run_id,) = launch_elsewhere(recipe, root, "local")
    try:
        # What Jupyter does to a kernel: interrupt its process group, then kill it.
        os.killpg(launcher.pid, signal.SIGINT)
        wait_until(lambda: launcher.poll() is not None, 10, "the launcher's end")
    finally:
        launcher.kill()
        launcher.communicate()
    (found,) = runs(root)
    run = Run(run_id[:20], root)
    assert found == run
    assert run.name == "from <elsewhere>"
    wait_until(lambda: run.state.step >= 20 or run.status == "failed", 90, "step 20")
    assert run.status == "running", run.state.error
    assert all(os.getsid(process.pid) not in (launcher.pid, os.getsid(0)) for process in processes_of(root))

    assert "optimizer.lr" in run.set("optimizer.lr", 1e-4, timeout=30)
    assert "held-out loss" in run.evaluate(timeout=30)
    assert "step-" in run.checkpoint(timeout=30)
    view = run.view()
    assert {"start", "knob", "evaluation", "checkpoint"} <= {event["kind"] for event in view.telemetry.events}
    assert view.evaluations["heldout"]
    assert "stopping" in run.stop(timeout=30)
    result = run.wait(timeout=60)
    assert isinstance(result, dict)
    assert (result["run"], result["state"]) == (run_id, "stopped")
    wait_until(lambda: not processes_of(root), 60, "the supervisor's end")
    assert run.folder.report.exists(), run.tail()


@pytest.mark.process
def test_inline_runs_end_with_their_launcher(corpus: Path, root: Path, tmp_path: Path) -> None:
    """One is forked from a process that is held ready, one has new processes."""
    recipe = tiny_recipe(corpus, steps=100_000).save(tmp_path / "recipe.json")
    launcher, ids = launch_elsewhere(recipe, root, "inline", ("on", "off"))
    runs = [Run(each, root) for each in ids]
    supervisors = [psutil.Process(Launched.read(run.folder).handle["pid"]) for run in runs]
    assert [each.ppid() == launcher.pid for each in supervisors] == [False, True]
    wait_until(lambda: len(processes_of(root)) == 4, 30, "supervisors and trainers")
    launcher.kill()
    # Before anybody has looked at its end, too.
    wait_until(lambda: not processes_of(root), 3, "the end of all")
    launcher.communicate()
    for run in runs:
        assert run.status == "failed"
        assert "process that launched this run has ended" in run.state.error
