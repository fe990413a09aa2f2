"""What pages may ask, who is let through, and what they are shown; the trainer's part is in tests/training."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.jupyter.live import run_folder
from workbench.base.errors import RunError
from workbench.client.run import Run
from workbench.client.steering import MOST_EDITS, forked, request_of, steer, steering
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
    made = {"run": run.id, "name": "alpha-low", "step": 576, "fresh": []}
    assert forked(run.folder) == {"state": "done", "text": "alpha-low goes on from step 576", "made": made}
    write_state(run.folder, status="queued")
    assert forked(run.folder)["text"] == "alpha-low waits for its turn, then goes on from step 576"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"", "JSON object"),
        (b"[" * 20_000, "JSON object"),
        ([], "JSON object"),
        ({}, "legal: check, checkpoint"),
        ({"verb": ["stop"]}, "unknown value"),
        ({"verb": "stpo"}, "did you mean 'stop'"),
        ({"verb": "forked"}, "unknown value 'forked'"),
        ({"verb": "stop", "path": "x"}, "legal: controller, hold, take_over, verb"),
        ({"verb": "stop", "by": "somebody else"}, "legal:"),
        ({"verb": "stop", "take_over": 1}, "true or false"),
        ({"verb": "stop", "controller": 7}, "controller"),
        ({"verb": "stop", "controller": "x" * 81}, "controller"),
        ({"verb": "stop", "hold": True}, "name itself"),
        ({"verb": "lease"}, "name itself"),
        ({"verb": "release", "controller": ""}, "name itself"),
        ({"verb": "release", "controller": "x", "take_over": True}, "legal:"),
        ({"verb": "restart", "on": "inline"}, "legal:"),
        ({"verb": "fork", "on": "inline"}, "legal:"),
        ({"verb": "fork", "step": "3"}, "step"),
        ({"verb": "fork", "step": True}, "step"),
        ({"verb": "fork", "step": -1}, "step"),
        ({"verb": "fork", "edits": "optimizer.lr=1"}, "list"),
        ({"verb": "fork", "edits": ["a=1"] * (MOST_EDITS + 1)}, "list"),
        ({"verb": "fork", "edits": ["--runs"]}, "PATH=VALUE"),
        ({"verb": "fork", "edits": ["a=\0"]}, "PATH=VALUE"),
        ({"verb": "try_fork", "edits": ["a=" + "x" * 5000]}, "PATH=VALUE"),
    ],
)
def test_a_senseless_request_is_refused(value: Any, said: str) -> None:
    with pytest.raises(RunError, match=said):
        request_of(value)


def test_who_asks_with_hold_steers_from_then_on(run: Run) -> None:
    asked = request_of(b'{"verb": "pause", "controller": "page-1", "hold": true}')
    answer = steer(run, asked, "Ann")
    assert answer == {"state": "asked", "text": "", "request": control.pending(run.folder)[0].id}
    assert (read_lease(run.folder).controller, read_lease(run.folder).name) == ("page-1", "Ann")
    other = {"verb": "stop", "controller": "page-2", "hold": True}
    answer = steer(run, other)
    # A page has a button instead of an option of the command line.
    assert re.fullmatch(r"it is steered by Ann \(free in (29|30) s unless they go on\)", answer.pop("text"))
    assert answer == {"state": "refused", "reason": "leased"}
    steer(run, other | {"take_over": True}, "Bob")
    assert read_lease(run.folder).name == "Bob"
    before, after = control.pending(run.folder)
    assert "taken over" in control.refusal(run.folder, before)
    assert control.refusal(run.folder, after) == ""


def test_who_only_presses_stop_holds_nothing(run: Run) -> None:
    assert steer(run, {"verb": "stop", "controller": "page-1"})["state"] == "asked"
    assert not read_lease(run.folder).held()


def test_nobody_comes_to_hold_a_run_that_ended(tmp_path: Path) -> None:
    ended = Run(run_folder(tmp_path / "20260101-000000-b", status="stopped", alive=False))
    answer = steer(ended, {"verb": "pause", "controller": "page-1", "hold": True})
    assert answer["state"] == "refused"
    assert "it is stopped" in answer["text"]
    assert not read_lease(ended.folder).held()
