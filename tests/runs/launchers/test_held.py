"""A run that is given to a trainer that waits for one is like any other; what does not fit is left, and ends."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import workbench
from tests.runs.tiny import tiny_recipe, wait_until
from workbench.runs.folder import RunFolder, read_object
from workbench.runs.launch import launch
from workbench.runs.launchers import held
from workbench.runs.order import Order
from workbench.runs.run import Run
from workbench.runs.state import LOCK_VARIABLE, lock_held, take_lock


@pytest.fixture
def waiting(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """The supervisor that waits, its trainer loading; both are gone with the test, and whoever follows them."""
    # Pytest changes a variable of its own with every step of a test.
    monkeypatch.setattr(held, "LATE", (*held.LATE, "PYTEST_"))
    monkeypatch.delenv(held.VARIABLE)
    held.hold()
    process = held._held[0].process
    # A run that comes earlier starts as ever.
    wait_until(lambda: bool(select.select([held._held[0].channel], [], [], 0.0)[0]), 30, "its first word")
    yield process
    held.release()
    process.kill()
    process.wait()


def launched(corpus: Path, root: Path) -> tuple[Run, psutil.Process]:
    """A run that trains, and its trainer."""
    run = launch(tiny_recipe(corpus, steps=100_000), runs_dir=root)
    wait_until(lambda: run.state.step >= 1 or run.status in ("failed", "lost"), 90, "the first step")
    assert run.status == "running", run.state
    return run, psutil.Process(run.state.pid)


@pytest.mark.process
def test_a_killed_trainer_is_told(
    corpus: Path, root: Path, waiting: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Read after torch was loaded, so that it may be set until a launch.
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "later"))
    run, trainer = launched(corpus, root)
    assert (tmp_path / "later" / "tokens").is_dir()
    assert trainer.cmdline()[2:4] == ["-m", "workbench.training.held"]
    assert (trainer.ppid(), read_object(run.folder.launched)["pid"]) == (waiting.pid, waiting.pid)
    assert os.getsid(waiting.pid) == waiting.pid != os.getsid(0)
    assert next(iter(read_object(run.folder.environment)["start_seconds"])) == "loading torch"
    # The next one is not the same one.
    assert held._held[0].process.pid != waiting.pid
    trainer.send_signal(signal.SIGKILL)
    wait_until(lambda: run.status == "failed", 30, "the end")
    assert "was killed (signal 9, SIGKILL)" in run.state.error
    wait_until(lambda: waiting.poll() is not None, 30, "the supervisor's end")
    assert not lock_held(run.folder)


@pytest.mark.process
def test_a_killed_supervisor_leaves_no_orphan(corpus: Path, root: Path, waiting: subprocess.Popen[bytes]) -> None:
    run, trainer = launched(corpus, root)
    waiting.kill()
    wait_until(lambda: not trainer.is_running() or trainer.status() == psutil.STATUS_ZOMBIE, what="the trainer's end")
    wait_until(lambda: run.status == "lost", what="the loss")


@pytest.mark.process
@pytest.mark.parametrize("why", ["another environment", "no answer", "ended"])
def test_what_does_not_fit_is_left_and_ends(
    folder: RunFolder, root: Path, waiting: subprocess.Popen[bytes], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if why == "another environment":
        monkeypatch.setenv("OMP_NUM_THREADS", "7")
    elif why == "no answer":
        monkeypatch.setattr(held, "ANSWER_SECONDS", 0.1)
        waiting.send_signal(signal.SIGSTOP)
    else:
        waiting.kill()
    lock = take_lock(folder)
    with folder.log.open("wb") as log:
        order = Order([str(folder.path)], str(folder.path), {}, log.fileno(), {LOCK_VARIABLE: lock})
        assert held.hand_over(order) is None
        assert waiting.poll() is not None
    (next_one,) = held._held
    assert next_one.process.pid != waiting.pid, "there is none for a second run"
    with folder.log.open("wb") as log:
        assert held.hand_over(order._replace(log=log.fileno())) is None, "it has only begun"
    assert held._held == [next_one]
    os.close(lock)
    assert not lock_held(folder), "it must not keep the lock of a run that somebody else trains"


@pytest.mark.parametrize("why", ["switched off", "little memory"])
def test_none_is_held_where_that_is_not_wanted(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if why == "little memory":
        monkeypatch.delenv(held.VARIABLE)
        monkeypatch.setattr(held, "LEAST_BYTES", 1 << 60)
    held.hold()
    assert held._held == []


@pytest.mark.parametrize("notebook", [True, False])
def test_whoever_composes_in_a_notebook_has_one(notebook: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    held_by: list[str] = []
    monkeypatch.setattr(held, "hold", lambda: held_by.append("the kernel"))
    modules = {name: module for name, module in sys.modules.items() if name != "ipykernel"}
    monkeypatch.setattr(sys, "modules", modules | ({"ipykernel": sys} if notebook else {}))
    monkeypatch.delitem(vars(workbench), "Recipe", raising=False)
    assert workbench.Recipe is not None
    # A second look loads nothing, and holds no other.
    assert workbench.Recipe is not None
    assert held_by == ["the kernel"] * notebook


@pytest.mark.process
def test_they_end_with_whoever_holds_them() -> None:
    code = (
        "import os; from workbench.runs.launchers import held; import time\n"
        "del os.environ[held.VARIABLE]; held.hold(); print(held._held[0].process.pid, flush=True); time.sleep(600)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    waiting = psutil.Process(int(holder.stdout.readline()))
    wait_until(lambda: bool(waiting.children()), what="the trainer")
    both = [waiting, *waiting.children()]
    holder.kill()
    holder.communicate()
    assert psutil.wait_procs(both, timeout=30)[1] == []
