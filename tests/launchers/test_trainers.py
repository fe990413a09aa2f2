"""Several trainers of one run: launched together, shown, refused, and none is left when one of them dies."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.run_folders import processes_of
from tests.tiny_runs import tiny_recipe, wait_until
from workbench.base.errors import RecipeError, RunError, RunFailed
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.client.summary import summary
from workbench.launchers import trainers
from workbench.launchers.launched import Launched
from workbench.launchers.local import Local
from workbench.launchers.nodes import Nodes
from workbench.launchers.trainers import End, Trainer, start_all, wait_for_all
from workbench.store.state import LOCK_VARIABLE

TRAINER = "workbench.training.worker"


def stepped(run: Run, step: int) -> None:
    wait_until(lambda: run.state.step >= step or run.status in ("failed", "lost"), 90, f"step {step}")
    assert run.status == "running", run.state.error


@pytest.mark.extended
@pytest.mark.process
def test_a_run_of_two_processes_says_which_of_them_died_and_goes_on_in_two(corpus: Path, root: Path) -> None:
    run = launch(tiny_recipe(corpus, steps=1_000_000), on=Local(processes=2), runs_dir=root)
    stepped(run, 5)
    assert "2 processes together" in summary(run.folder)["device"]
    (second,) = (each for each in processes_of(root, TRAINER) if each.pid != run.state.pid)
    second.send_signal(signal.SIGKILL)
    with pytest.raises(RunFailed, match=r"process 1 of 2 was killed \(signal 9, SIGKILL\)"):
        run.wait(timeout=60)
    wait_until(lambda: not processes_of(root), 30, "the end of all")
    run.resume()
    reached = run.state.step
    stepped(run, reached + 5)
    assert len(processes_of(root, TRAINER)) == 2
    run.stop(timeout=60)
    assert run.wait(timeout=60)["state"] == "stopped"
    wait_until(lambda: not processes_of(root), 30, "the end of all")
    assert Launched.read(run.folder).knobs == {"processes": 2}
    assert f"process 1 of 2 ends with the run, after step {run.state.step}" in run.folder.log_of(1).read_text()
    assert "process 1" not in run.folder.log.read_text()


def test_what_several_processes_cannot_train_is_refused_before_there_is_a_run(corpus: Path, root: Path) -> None:
    recipe = tiny_recipe(corpus)
    with pytest.raises(RecipeError, match=r"optimizer\.kind: 'sophia' takes gradients of its own"):
        launch(recipe.with_(optimizer="sophia"), on=Local(processes=2), runs_dir=root)
    with pytest.raises(RunError, match=r"processes: 1000 with 1 thread each, .*; use 1\.\.\d+, fewer .*, or overs"):
        launch(recipe.with_(data={"batch_size": 1000}), on=Local(processes=1000), runs_dir=root)
    assert list(root.iterdir()) == []
    Local(processes=1000, oversubscribe=True).check(recipe.with_(data={"batch_size": 1000}))


def started(code: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-S", "-c", code], process_group=0)


@pytest.mark.process
@pytest.mark.parametrize(
    ("codes", "end"),
    [
        (("pass", "pass"), End(0, False, None)),
        # Rank 0 waits for a process that will not come.
        (("import time; time.sleep(60)", "raise SystemExit(3)"), End(-9, False, (1, 3))),
        # It has ended without the others.
        (("raise SystemExit(1)", "pass", "import time; time.sleep(60)"), End(1, False, None)),
    ],
)
def test_they_end_together(codes: tuple[str, ...], end: End, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainers, "GRACE_SECONDS", 1.0)
    children = [started(code) for code in codes]
    assert wait_for_all(list(children), lambda: False) == end
    assert all(child.returncode is not None for child in children)


@pytest.mark.process
def test_an_abandoned_run_ends_at_once() -> None:
    children = [started("import time; time.sleep(60)") for _ in range(2)]
    assert wait_for_all(list(children), lambda: True) == End(-9, True, None)


@pytest.mark.process
def test_trainers_are_told_who_they_are_and_none_stays_where_one_cannot_start() -> None:
    told: list[tuple[dict[str, str], dict[str, int]]] = []
    children: list[subprocess.Popen[bytes]] = []

    def start(arguments: list[str], environment: dict[str, str], descriptors: dict[str, int]) -> Trainer:
        told.append((environment, descriptors))
        if len(told) == 4:
            raise OSError("no more processes")
        children.append(started("import time; time.sleep(60)"))
        return children[-1]

    around = {"RANK": "7", "WORLD_SIZE": "8", "HOME": "/here"}
    start_all(start, [], around, 5, Nodes())
    assert told == [({"HOME": "/here"}, {LOCK_VARIABLE: 5})]
    with pytest.raises(OSError, match="no more processes"):
        start_all(start, [], around, 5, Nodes(processes=3))
    (first, lock), (second, nothing) = told[1:3]
    assert (first["RANK"], second["RANK"], second["WORLD_SIZE"]) == ("0", "1", "3")
    assert first["MASTER_PORT"] == second["MASTER_PORT"]
    assert (len(lock), nothing) == (1, {})
    assert [child.returncode for child in children[1:]] == [-9, -9]
    children[0].kill()
    children[0].wait()
