"""The trainer's word in ``state.json``: transitions at once, a heartbeat by itself, never NaN."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from workbench.recipes.recipe import Recipe
from workbench.store.folder import RunFolder
from workbench.store.state import read_state
from workbench.training import status as module
from workbench.training.loop import Training
from workbench.training.status import Status


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    (tmp_path / "run").mkdir()
    return RunFolder(tmp_path / "run")


def test_the_heartbeat_goes_on_by_itself_and_ends(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEARTBEAT_SECONDS", 0.02)
    status = Status(folder)
    status.write(status="starting", message="loading torch")
    first = read_state(folder).heartbeat
    time.sleep(0.2)
    later = read_state(folder)
    assert later.heartbeat > first
    assert (later.status, later.message) == ("starting", "loading torch"), "a heartbeat changes nothing else"
    status.close()
    last = read_state(folder).heartbeat
    time.sleep(0.1)
    assert read_state(folder).heartbeat == last
    assert not status._thread.is_alive()


def test_stages_of_the_start_are_shown_and_timed(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    status = Status(folder)
    try:
        assert status.starting, "nothing has begun yet"
        status.stage("loading torch", began=97.0, status="starting")
        assert (read_state(folder).status, read_state(folder).message) == ("starting", "loading torch")
        now[0] = 101.5
        status.stage("compiling", "it took 4 s the last time")
        assert read_state(folder).message == "compiling (it took 4 s the last time)"
        # A line of detail ends no stage.
        status.write(message="still compiling")
        now[0] = 103.0
        status.stage("loading torch")
        now[0] = 104.0
        assert status.starting
        status.stage("", status="running")
        assert not status.starting
        assert (read_state(folder).status, read_state(folder).message) == ("running", "")
        assert status.stages == {"loading torch": 5.5, "compiling": 1.5}
    finally:
        status.close()


def test_a_folder_that_is_gone_does_not_end_the_heartbeat(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEARTBEAT_SECONDS", 0.02)
    status = Status(folder)
    away = folder.path.rename(folder.path.with_name("away"))
    time.sleep(0.1)
    away.rename(folder.path)
    time.sleep(0.2)
    assert read_state(folder).heartbeat > 0
    status.close()


def test_a_late_heartbeat_is_a_suspension_and_is_not_charged(
    tiny: Recipe, build: Callable[..., Training], folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clocks jump by 100 seconds in the middle of a step, as they do for a process under SIGSTOP."""
    jump = [0.0]
    monkeypatch.setattr(module, "HEARTBEAT_SECONDS", 0.02)
    monotonic = time.monotonic
    for clock in ("monotonic", "perf_counter"):
        monkeypatch.setattr(time, clock, lambda: monotonic() + jump[0])
    training, status = build(tiny), Status(folder)
    status.follow(training)
    with training._charged():
        jump[0] = 100.0
        deadline = time.monotonic() + 30
        while not training.suspended_seconds and time.monotonic() < deadline:
            time.sleep(0.01)
    assert training.suspended_seconds == pytest.approx(100, abs=10)
    assert training.progress.seconds < 15
    status.close()


def test_a_word_that_waited_for_another_says_where_the_training_stands_then(
    tiny: Recipe, build: Callable[..., Training], folder: RunFolder
) -> None:
    status, training = Status(folder), build(tiny)
    status.follow(training)
    with status._one_at_a_time:
        late = threading.Thread(target=status.write, kwargs={"message": "late"})
        late.start()
        late.join(timeout=0.2)
        training.progress = replace(training.progress, step=7)
    late.join()
    assert (read_state(folder).message, read_state(folder).step) == ("late", 7)
    status.close()


def test_every_word_says_where_the_training_stands(
    tiny: Recipe, build: Callable[..., Training], folder: RunFolder
) -> None:
    status = Status(folder)
    assert status.step == 0
    training = build(tiny)
    status.follow(training)
    status.write(status="running", message="training")
    before = json.loads(folder.state.read_text())
    assert (before["loss"], before["tokens_per_second"]) == (None, None), "NaN is no JSON"
    training.step()
    training.settle()
    status.write(message="training")
    state = read_state(folder)
    assert (state.step, state.tokens, state.progress) == (1, 16 * 32, 1 / 20)
    assert state.loss == pytest.approx(5.5, abs=1.0)
    assert status.step == 1
    status.close()
