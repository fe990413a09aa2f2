"""What pages may ask, who is let through, and what they are shown; the trainer's part is in tests/training."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.jupyter.live import run_folder
from workbench.base.errors import RunError
from workbench.client.run import Run
from workbench.client.steering import (
    MOST_EDITS,
    ask,
    fork_of,
    forked_text,
    hold,
    lease_of,
    refusal,
    request_of,
    steering,
)
from workbench.store import control
from workbench.store.folder import write_json
from workbench.store.lease import claim, read_lease
from workbench.store.state import write_state


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run that counts as alive."""
    return Run(run_folder(tmp_path / "20260101-000000-a"))


def test_a_page_is_shown_knobs_checkpoints_and_who_steers(run: Run) -> None:
    assert steering(run.folder) == {"knobs": [], "checkpoints": [], "lease": None}
    control.write_knobs(run.folder, [{"path": "optimizer.lr"}])
    for name in ("step-20", "step-3", "step-4.tmp", "step-5.damaged"):
        (run.folder.checkpoints / name).mkdir(parents=True)
    claim(run.folder, "page-1", "Ann")
    shown = steering(run.folder)
    assert (shown["knobs"], shown["checkpoints"]) == ([{"path": "optimizer.lr"}], [3, 20])
    assert shown["lease"]["name"] == "Ann"


def test_a_fork_that_waits_is_not_said_to_go_on(run: Run) -> None:
    write_json(run.folder.origin, {"run": "20260101-000000-b", "step": 576})
    run.name = "alpha-low"
    assert forked_text(run.folder) == "alpha-low goes on from step 576"
    write_state(run.folder, status="queued")
    assert forked_text(run.folder) == "alpha-low waits for its turn, then goes on from step 576"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"", "JSON object"),
        (b"[" * 20_000, "JSON object"),
        ([], "JSON object"),
        ({}, "legal: check, checkpoint"),
        ({"verb": "stpo"}, "did you mean 'stop'"),
        ({"verb": "forked"}, "unknown value 'forked'"),
        ({"verb": "stop", "path": "x"}, "legal: controller, hold, take_over, verb"),
        ({"verb": "stop", "by": "somebody else"}, "legal:"),
        ({"verb": "stop", "take_over": 1}, "true or false"),
        ({"verb": "stop", "controller": 7}, "controller"),
        ({"verb": "stop", "controller": "x" * 81}, "controller"),
        ({"verb": "stop", "hold": True}, "name itself"),
    ],
)
def test_a_senseless_request_is_refused(value: Any, said: str) -> None:
    with pytest.raises(RunError, match=said):
        request_of(value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"step": "3"}, "step"),
        ({"step": True}, "step"),
        ({"step": -1}, "step"),
        ({"edits": "optimizer.lr=1"}, "list"),
        ({"edits": ["a=1"] * (MOST_EDITS + 1)}, "list"),
        ({"edits": ["--runs"]}, "PATH=VALUE"),
        ({"edits": ["a=\0"]}, "PATH=VALUE"),
        ({"edits": ["a=" + "x" * 5000]}, "PATH=VALUE"),
        ({"on": "inline"}, "legal:"),
    ],
)
def test_a_senseless_fork_is_refused(value: Any, said: str) -> None:
    with pytest.raises(RunError, match=said):
        fork_of(value)


def test_a_fork_is_read() -> None:
    assert fork_of(b'{"step": 3, "edits": ["optimizer.lr=1e-3"]}') == (3, ["optimizer.lr=1e-3"])
    assert fork_of({}) == (None, [])


def test_who_asks_with_hold_steers_from_then_on(run: Run) -> None:
    asked = request_of({"verb": "pause", "controller": "page-1", "hold": True})
    request = ask(run, asked, "Ann")
    assert [each.id for each in control.pending(run.folder)] == [request]
    assert (read_lease(run.folder).controller, read_lease(run.folder).name) == ("page-1", "Ann")
    other = request_of({"verb": "stop", "controller": "page-2", "hold": True})
    with pytest.raises(RunError, match="--take-over") as refused:
        ask(run, other)
    # A page has a button instead of an option of the command line.
    said, kind = refusal(run, refused.value)
    assert re.fullmatch(r"it is steered by Ann \(free in (29|30) s unless they go on\)", said)
    assert kind == "leased"
    assert refusal(run, RunError("no such knob")) == ("no such knob", "")
    ask(run, other | {"take_over": True}, "Bob")
    assert read_lease(run.folder).name == "Bob"
    before, after = control.pending(run.folder)
    assert "taken over" in control.refusal(run.folder, before)
    assert control.refusal(run.folder, after) == ""


def test_who_only_presses_stop_holds_nothing(run: Run) -> None:
    ask(run, request_of({"verb": "stop", "controller": "page-1"}))
    assert not read_lease(run.folder).held()


def test_nobody_comes_to_hold_a_run_that_ended(tmp_path: Path) -> None:
    ended = Run(run_folder(tmp_path / "20260101-000000-b", status="stopped", alive=False))
    with pytest.raises(RunError, match="it is stopped") as refused:
        ask(ended, request_of({"verb": "pause", "controller": "page-1", "hold": True}))
    assert refusal(ended, refused.value)[1] == "ended"
    assert not read_lease(ended.folder).held()


def test_a_lease_is_claimed_renewed_taken_over_and_let_go(run: Run) -> None:
    first = hold(run.folder, lease_of({"controller": "page-1"}), "Ann")
    assert first is not None
    assert first["name"] == "Ann"
    assert hold(run.folder, lease_of({"controller": "page-1"})) is not None
    with pytest.raises(RunError, match="steered by"):
        hold(run.folder, lease_of({"controller": "page-2"}))
    taken = hold(run.folder, lease_of({"controller": "page-2", "take_over": True}))
    assert taken is not None
    assert taken["controller"] == "page-2"
    still = hold(run.folder, lease_of({"controller": "page-1", "release": True}))
    assert still is not None
    assert still["controller"] == "page-2", "nobody lets go of what is another's"
    assert hold(run.folder, lease_of({"controller": "page-2", "release": True})) is None
    for wrong in ({}, {"controller": ""}, {"controller": "x", "verb": "stop"}, {"controller": "x", "release": "yes"}):
        with pytest.raises(RunError):
            lease_of(wrong)
