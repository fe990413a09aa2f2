"""What becomes of a request: sent, accepted, then done, refused, or never answered."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from workbench.base.errors import RunError
from workbench.client.run import Run
from workbench.store import control
from workbench.store.folder import RunFolder
from workbench.store.requests import follow, look, wait
from workbench.store.state import STALLED, STALLED_SECONDS, boot_id, take_lock, write_state


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
    assert list(answers) == []
    assert wait(alive, request, 0) == last


def test_what_nobody_takes_up_in_time_stands(alive: RunFolder) -> None:
    assert wait(alive, control.send(alive, "checkpoint"), 0).state == "sent"
    with pytest.raises(TimeoutError, match="within 0 s; the request stands"):
        Run(alive).ask("pause", timeout=0)
    with pytest.raises(TimeoutError, match=r"the profile will be in .*profile\.json; the request stands"):
        Run(alive).ask("profile", timeout=0)


@pytest.mark.parametrize("verb", ["checkpoint", "evaluate", "profile"])
def test_what_has_begun_is_waited_for_until_it_is_done(
    alive: RunFolder, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    send = control.send

    def taken_up(*arguments: Any, **named: Any) -> str:
        request = send(*arguments, **named)
        control.answer(alive, request, None, "at work on it")

        def end() -> None:
            time.sleep(0.2)
            control.answer(alive, request, True, "it is done")

        threading.Thread(target=end).start()
        return request

    monkeypatch.setattr(control, "send", taken_up)
    said: list[str] = []
    assert Run(alive).ask(verb, timeout=0, said=said.append) == "it is done"
    assert said == ["at work on it"]


def test_a_run_that_has_stalled_over_it_is_not_waited_for(alive: RunFolder) -> None:
    request = control.send(alive, "evaluate")
    control.answer(alive, request, None, "evaluating")
    quiet = time.monotonic() - 2 * STALLED_SECONDS
    write_state(alive, heartbeat=time.time() - 2 * STALLED_SECONDS, heartbeat_monotonic=quiet, boot_id=boot_id())
    answer = wait(alive, request, 0)
    assert (answer.state, answer.status, answer.settled) == ("accepted", STALLED, False)
    with pytest.raises(TimeoutError, match="the request stands"):
        Run(alive).ask("checkpoint", timeout=0)


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
