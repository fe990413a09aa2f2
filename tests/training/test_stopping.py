"""A run that is told to end while it starts ends at once, and begins anew when it is resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.training.conftest import LiveRun
from workbench.recipes.recipe import Recipe
from workbench.store import control

Live = Callable[[Recipe], LiveRun]


@pytest.mark.process
def test_a_stop_ends_a_calibration(tiny: Recipe, live: Live) -> None:
    execution = {"kind": "auto", "device": "cpu", "threads": 1, "layers_every": 5}
    run = live(tiny.with_(execution=execution, budget="1000000 steps")).fork()
    run.until(lambda run: run.state.message.startswith("preparing: measuring which knobs"))
    request = control.send(run.folder, "stop")
    # It may take half a minute, and is given up instead.
    assert run.wait() == 0, run.log
    assert (run.state.status, run.state.step) == ("stopped", 0)
    assert run.state.message == "stopped on request, before the first step"
    answer = control.outcome(run.folder, request)
    assert answer is not None
    assert (answer["done"], answer["text"]) == (True, "stopping before the first step")
    assert not run.telemetry.scalars
    assert not run.folder.checkpoints.exists() or not list(run.folder.checkpoints.iterdir())


@pytest.mark.process
def test_a_signal_ends_the_loading_of_torch(tiny: Recipe, live: Live) -> None:
    run = live(tiny).start()
    run.until(lambda run: run.state.message == "loading torch")
    assert run.process is not None
    run.process.send_signal(signal.SIGTERM)
    assert run.wait() == 0, run.log
    assert (run.state.status, run.state.step, run.state.exit_code) == ("stopped", 0, 0)
    assert run.state.message == "stopped by SIGTERM, before the first step"

    run.fork("--resume")
    assert run.wait() == 0, run.log
    assert (run.state.status, run.state.step) == ("finished", 20)


def dress_stops() -> None:
    """As code in C or Rust does that calls back into Python."""

    def load(path: Path) -> Recipe:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except BaseException as stop:
            raise RuntimeError("an error of its own") from stop
        raise AssertionError(f"no stop came while {path} was read")

    Recipe.load = load  # type: ignore[method-assign]


@pytest.mark.process
def test_a_stop_that_turned_into_another_error_on_the_way_is_a_stop(tiny: Recipe, live: Live) -> None:
    run = live(tiny).fork(before=dress_stops)
    assert run.wait() == 0, run.log
    assert (run.state.status, run.state.error) == ("stopped", "")
    assert run.state.message == "stopped by SIGTERM, before the first step"


# A forked trainer gets there within milliseconds of its launch: the stop may be there first.
AT_ONCE = """
import signal, sys, threading
from workbench.training import worker

start = threading.Thread.start

def told(thread):
    if thread.name == "stopping":
        signal.raise_signal(signal.SIGTERM)
    start(thread)

threading.Thread.start = told
sys.exit(worker.main(sys.argv[1:]))
"""


@pytest.mark.process
def test_a_stop_in_the_moment_of_the_first_look_is_a_stop(tiny: Recipe, live: Live) -> None:
    run = live(tiny)
    done = subprocess.run([sys.executable, "-c", AT_ONCE, str(run.folder.path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (run.state.status, run.state.error) == ("stopped", "")
