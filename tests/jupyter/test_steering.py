"""Requests through the kernel alone: who is answered, with what; what a fork would change is told before it is made."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from tests.jupyter.live import run_folder, until
from workbench.client.fork_point import ForkPoint
from workbench.client.run import Run
from workbench.jupyter import steering as module
from workbench.jupyter.steering import Steering
from workbench.recipes.recipe import Recipe
from workbench.store import control
from workbench.store.folder import write_json
from workbench.store.state import write_state


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(run_folder(tmp_path / "20260101-000000-a", **Recipe(name="parent").to_dict()))


@pytest.fixture
def told() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def steering(run: Run, told: list[dict[str, Any]]) -> Steering:
    return Steering({run.id: run}.get, told.append, lambda: told.append({"stirred": True}))


def states(told: list[dict[str, Any]]) -> list[str]:
    return [answer["state"] for answer in told]


def test_an_answer_is_for_the_page_that_asked(steering: Steering, run: Run, told: list[dict[str, Any]]) -> None:
    steering.receive({"type": "control", "token": "page-1", "run": run.id, "verb": "evaluate", "controller": "page"})
    until(lambda: states(told) == ["asked"])
    (request,) = control.pending(run.folder)
    control.answer(run.folder, request.id, None, "evaluating")
    until(lambda: states(told) == ["asked", "accepted"])
    control.answer(run.folder, request.id, True, "held-out loss 5.4")
    until(lambda: states(told) == ["asked", "accepted", "done"])
    assert {answer["token"] for answer in told} == {"page-1"}
    assert (told[-1]["text"], told[-1]["error"], told[-1]["run"]) == ("held-out loss 5.4", False, run.id)


def test_a_refusal_says_why(steering: Steering, run: Run, told: list[dict[str, Any]]) -> None:
    asked = {"type": "control", "run": run.id, "verb": "set", "path": "optimizer.lr", "value": -1}
    steering.receive({**asked, "token": "a", "controller": "page-1", "hold": True})
    until(lambda: bool(control.pending(run.folder)))
    control.answer(run.folder, control.pending(run.folder)[0].id, False, "must be > 0")
    until(lambda: states(told)[-1:] == ["refused"])
    assert told[-1]["text"] == "must be > 0"
    steering.receive({**asked, "token": "b", "controller": "page-2", "hold": True})
    until(lambda: told[-1]["token"] == "b")
    assert (told[-1]["state"], told[-1]["reason"]) == ("refused", "leased")
    assert "steered by" in told[-1]["text"]
    steering.receive({"type": "control", "token": "c", "run": run.id, "verb": "export"})
    until(lambda: told[-1]["token"] == "c")
    assert "legal: check" in told[-1]["text"]


def test_a_run_that_ends_before_it_answers_is_told(steering: Steering, run: Run, told: list[dict[str, Any]]) -> None:
    steering.receive({"type": "control", "token": "a", "run": run.id, "verb": "pause"})
    until(lambda: states(told) == ["asked"])
    write_state(run.folder, status="failed")
    until(lambda: states(told) == ["asked", "refused"])
    assert "ended before it answered" in told[-1]["text"]


def test_no_answer_in_time_is_told_too(
    steering: Steering, run: Run, told: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.1)
    steering.receive({"type": "control", "token": "a", "run": run.id, "verb": "pause"})
    until(lambda: states(told) == ["asked", "late"])
    assert not told[-1]["error"]


def test_the_lease_goes_through_the_kernel_as_well(steering: Steering, run: Run, told: list[dict[str, Any]]) -> None:
    for token, more in (("a", {}), ("b", {"take_over": True}), ("b", {"release": True})):
        steering.receive({"type": "lease", "token": token, "run": run.id, "controller": token, **more})
        until(lambda token=token: bool(told) and told[-1]["token"] == token and states(told)[-1] == "done")
        told[:-1] = []
    until(lambda: told[-1]["lease"] is None)
    steering.receive({"type": "lease", "token": "c", "run": run.id})
    until(lambda: told[-1]["token"] == "c")
    assert told[-1]["error"]


def test_foreign_runs_and_words_start_no_thread(steering: Steering, told: list[dict[str, Any]]) -> None:
    before = threading.active_count()
    for message in ({"type": "control", "run": "other"}, {"type": "fork"}, {"type": "_tell", "run": "x"}, {}):
        steering.receive(message)
    assert threading.active_count() == before
    assert told == []


def test_what_a_fork_would_change_is_told_and_nothing_is_made(
    steering: Steering, run: Run, told: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = run.folder.checkpoints / "step-7"
    saved.mkdir(parents=True)
    write_json(saved / "state.json", {"step": 7, "tokens": 700, "seconds": 1.0, "overrides": {"optimizer.lr": 0.25}})
    asked = {"type": "try_fork", "run": run.id, "step": 7}
    steering.receive({**asked, "token": "a", "edits": ["optimizer.lr=0.5", "budget=300 steps"]})
    until(lambda: bool(told))
    assert told[-1]["text"] == (
        "budget.amount 200.0 → 300.0, optimizer.lr 0.25 → 0.5; 293 of 300 steps are left (budget 200 steps → 300 steps)"
    ), "against what was in force"
    for edit, said in (
        ("architecture.layers=9", "a fork cannot change"),
        ("step=5", "step"),
        ("budget=5 steps", "spent"),
    ):
        steering.receive({**asked, "token": edit, "edits": [edit]})
        until(lambda edit=edit: told[-1]["token"] == edit)
        assert (told[-1]["state"], said in told[-1]["text"]) == ("refused", True), told[-1]
    monkeypatch.setattr(ForkPoint, "of", lambda *_: pytest.fail("the checkpoint was read, and torch loaded, before it"))
    for kind in ("try_fork", "fork"):
        steering.receive({**asked, "type": kind, "token": kind, "edits": ["optimiser.lr=0.5"]})
        until(lambda kind=kind: told[-1]["token"] == kind)
        assert told[-1]["text"] == "optimiser.lr: this run has no such knob; did you mean optimizer.lr?"
    monkeypatch.undo()
    steering.receive({**asked, "token": "z", "step": 8})
    until(lambda: told[-1]["token"] == "z")
    assert "it has those of 7" in told[-1]["text"]
    assert [folder.name for folder in run.folder.path.parent.iterdir()] == [run.id]
