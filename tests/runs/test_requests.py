"""What becomes of a request: sent, accepted, then done, refused, or never answered."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from workbench.errors import RunError
from workbench.runs import control
from workbench.runs.folder import RunFolder
from workbench.runs.requests import follow, look, wait
from workbench.runs.run import Run
from workbench.runs.state import take_lock, write_state


@pytest.fixture
def alive(folder: RunFolder) -> Iterator[RunFolder]:
    """A run that this process trains: it answers when the test says so."""
    lock = take_lock(folder)
    write_state(folder, status="running")
    yield folder
    os.close(lock)


@pytest.mark.parametrize("done", [True, False])
def test_every_state_is_seen_once_and_the_last_one_ends_it(alive: RunFolder, done: bool) -> None:
    request = control.send(alive, "evaluate")
    answers = follow(alive, request, 60)
    assert (next(answers).state, look(alive, request).settled) == ("sent", False)
    control.answer(alive, request, None, "evaluating")
    accepted = next(answers)
    assert (accepted.state, accepted.text, accepted.status) == ("accepted", "evaluating", "running")
    control.answer(alive, request, done, "held-out loss 2.0")
    last = next(answers)
    assert (last.state, last.text, last.settled) == ("done" if done else "refused", "held-out loss 2.0", True)
    assert last.time is not None
    assert list(answers) == []
    assert wait(alive, request, 0) == last


def test_what_is_being_done_is_neither_done_nor_refused_when_the_time_is_up(alive: RunFolder) -> None:
    request = control.send(alive, "checkpoint")
    assert wait(alive, request, 0).state == "sent"
    control.answer(alive, request, None, "saving a checkpoint")
    assert (wait(alive, request, 0.1).state, wait(alive, request, 0).settled) == ("accepted", False)
    with pytest.raises(TimeoutError, match="within 0 s; the request stands"):
        Run(alive).ask("pause", timeout=0)


def test_a_profile_that_has_begun_is_waited_for_and_one_that_has_not_says_where_it_will_be(
    alive: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TimeoutError, match=r"the profile will be in .*profile\.json; the request stands"):
        Run(alive).ask("profile", timeout=0)
    send = control.send

    def taken_up(*arguments: Any, **named: Any) -> str:
        request = send(*arguments, **named)
        control.answer(alive, request, None, "looking into 40 steps")

        def end() -> None:
            time.sleep(0.2)
            control.answer(alive, request, True, "of 9.0 ms a step")

        threading.Thread(target=end).start()
        return request

    monkeypatch.setattr(control, "send", taken_up)
    assert Run(alive).ask("profile", timeout=0) == "of 9.0 ms a step"


@pytest.mark.parametrize("accepted", [True, False])
def test_a_run_that_ends_answers_no_more(alive: RunFolder, accepted: bool) -> None:
    request = control.send(alive, "checkpoint")
    if accepted:
        control.answer(alive, request, None, "saving a checkpoint")
    write_state(alive, status="failed")
    answer = wait(alive, request, 60)
    assert (answer.state, answer.status, answer.settled) == ("ended", "failed", True)


def test_only_ids_of_requests_are_looked_for(alive: RunFolder) -> None:
    with pytest.raises(RunError, match="not the id of a request"):
        look(alive, "../recipe")
