"""What a run has to survive from outside and is not injected elsewhere; ``tests/faults/run.py`` has them all."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable

import pytest

from tests.training.conftest import LiveRun
from tests.training.test_resume import assert_same, train
from workbench.base.errors import FREE_SPACE
from workbench.recipes.recipe import Recipe
from workbench.store import control
from workbench.telemetry.streams import stream_path
from workbench.training import checkpoint

Live = Callable[..., LiveRun]
DAY = 86_400.0
CAP_DAC_OVERRIDE = 1 << 1


def jumping_clock() -> None:
    """Have the clock of day jump forth and back by two days, twice a second."""
    real = time.time
    time.time = lambda: real() + (DAY if int(2 * time.monotonic()) % 2 else -DAY)


def as_anybody() -> None:
    """Take from root what nobody else has: writing where the permissions forbid it."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0
    for index in range(3):  # effective, permitted, inheritable
        sets[index] &= ~CAP_DAC_OVERRIDE
    assert libc.capset(header, sets) == 0, os.strerror(ctypes.get_errno())


@pytest.mark.extended
@pytest.mark.process
def test_a_clock_that_jumps_changes_nothing_that_is_trained(tiny: Recipe, live: Live) -> None:
    recipe = tiny.with_(budget={"amount": 300, "unit": "steps", "checkpoint_seconds": 0.2})
    whole, run = live(recipe), live(recipe)
    straight = train(whole)
    assert run.fork(before=jumping_clock).wait() == 0, run.log
    found = checkpoint.load_latest(run.folder.checkpoints)
    assert found is not None
    assert_same(straight, found)
    assert run.telemetry.series("loss") == whole.telemetry.series("loss")
    seconds = run.telemetry.series("loss", "seconds")[0]
    assert seconds == sorted(seconds)
    assert seconds[-1] < 600, "a day of the clock is no second of training"
    assert [event["kind"] for event in run.telemetry.events if event["kind"] == "stalled"] == []


@pytest.mark.process
def test_a_folder_that_becomes_read_only_pauses_the_run(tiny: Recipe, live: Live) -> None:
    """Its state says so once it can be written; until then its events do, a file that is open."""
    recipe = tiny.with_(budget={"amount": 100_000, "unit": "steps", "evaluations": 1, "checkpoint_seconds": 0.2})
    whole, run = live(recipe), live(recipe)
    run.fork(before=as_anybody)
    run.until(lambda run: checkpoint.checkpoints(run.folder.checkpoints))
    folders = [run.folder.path, *(path for path in run.folder.path.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        run.until(lambda run: any(event["kind"] == "pause" for event in run.telemetry.events))
        assert "Permission denied" in run.telemetry.events[-1]["text"]
        assert FREE_SPACE in run.telemetry.events[-1]["text"]
        saved = checkpoint.load_latest(run.folder.checkpoints)
        assert saved is not None
        assert saved.damaged == {}
    finally:
        for folder in folders:
            folder.chmod(0o755)
    run.until(lambda run: run.state.status == "paused")
    step = run.state.step
    control.send(run.folder, "resume")
    run.until(lambda run: run.state.status == "running" and run.state.step > step)
    control.send(run.folder, "stop")
    assert run.wait() == 0, run.log
    end = checkpoint.load_latest(run.folder.checkpoints)
    assert end is not None
    assert end.step > step
    assert_same(train(whole, stop_at=end.step), end)
    assert run.telemetry.series("loss") == whole.telemetry.series("loss")


@pytest.mark.extended
@pytest.mark.process
def test_a_line_that_nobody_can_read_is_left_out_and_the_run_goes_on(tiny: Recipe, live: Live) -> None:
    run = live(tiny.with_(budget={"amount": 400, "unit": "steps"})).fork()
    run.until(lambda run: run.steps_said > 20)
    # As a bad sector leaves it: whole lines, but not what was written.
    with stream_path(run.folder.telemetry, "scalars").open("ab") as stream:
        stream.write(b"\xff\x00{]\n" * 3)
    assert run.wait() == 0, run.log
    assert run.state.status == "finished"
    assert run.telemetry.series("loss")[0] == list(range(1, 401))
