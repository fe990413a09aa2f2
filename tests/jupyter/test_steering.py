"""Requests of a page, through the kernel and through the server: who is answered, with what."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.jupyter.live import run_folder, until
from tests.jupyter.server.conftest import Server, server
from workbench.client.fork_point import ForkPoint
from workbench.client.run import Run
from workbench.jupyter import steering as module
from workbench.jupyter.steering import Steering
from workbench.recipes.recipe import Recipe
from workbench.store import control
from workbench.store.folder import write_json
from workbench.store.lease import read_lease
from workbench.store.state import write_state
from workbench.telemetry.streams import add_event

__all__ = ["server"]
pytestmark = pytest.mark.xdist_group("server")
Answers = list[dict[str, Any]]
Ask = Callable[..., Answers]


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return the folder of the runs: a server shows its own alone."""
    return request.getfixturevalue("server").runs if "server" in request.node.name else tmp_path


@pytest.fixture
def run(folder: Path, request: pytest.FixtureRequest) -> Run:
    name = f"20260103-000000-{abs(hash(request.node.nodeid)) % 16**8:08x}"
    return Run(run_folder(folder / name, **Recipe(name="parent").to_dict()))


@pytest.fixture
def kernel(run: Run) -> Ask:
    """A page that asks through the kernel: the answers to a request, which come in time."""
    told: Answers = []
    steering = Steering({run.id: run}.get, told.append, lambda: told.append({"stirred": True}))

    def ask(**request: Any) -> Answers:
        del told[:]
        steering.receive({"type": "steer", "id": "page-1", "run": run.id, **request})
        return told

    return ask


def through_server(server: Server, run: Run) -> Ask:
    """The same through the server."""

    def ask(**request: Any) -> Answers:
        page, path = server.page(), f"/runs/here/{run.id}/steer"
        told: Answers = [page.post(path, request).json]

        def follow() -> None:
            while told[-1]["state"] in ("asked", "accepted"):
                known = told[-1]["state"].replace("asked", "")
                told.append(page.get(f"{path}/{told[0]['request']}", wait=10, said=known).json)

        threading.Thread(target=follow, daemon=True).start()
        return told

    return ask


@pytest.fixture(params=["kernel", "server"])
def ask(request: pytest.FixtureRequest, run: Run) -> Ask:
    """A page that asks in either way."""
    if request.param == "kernel":
        return request.getfixturevalue("kernel")
    return through_server(request.getfixturevalue("server"), run)


def states(told: Answers) -> list[str]:
    return [answer["state"] for answer in told]


def text_of(told: Answers) -> str:
    until(lambda: states(told)[-1:] in (["refused"], ["done"]))
    return str(told[-1]["text"])


def test_the_answer_of_the_run_comes_as_it_is_given(ask: Ask, run: Run) -> None:
    told = ask(verb="evaluate", controller="page")
    until(lambda: states(told) == ["asked"])
    (request,) = control.pending(run.folder)
    control.answer(run.folder, request.id, None, "evaluating")
    until(lambda: states(told) == ["asked", "accepted"])
    assert told[-1]["under_way"]
    control.answer(run.folder, request.id, True, "held-out loss 5.4")
    assert text_of(told) == "held-out loss 5.4"
    assert states(told) == ["asked", "accepted", "done"]


def test_a_refusal_says_why(ask: Ask, run: Run) -> None:
    asked = {"verb": "set", "path": "optimizer.lr", "value": -1, "hold": True}
    told = ask(**asked, controller="page-1")
    until(lambda: bool(control.pending(run.folder)))
    assert control.pending(run.folder)[0].arguments == {"path": "optimizer.lr", "value": -1}
    control.answer(run.folder, control.pending(run.folder)[0].id, False, "must be > 0, not 100%")
    assert text_of(told) == "must be > 0, not 100%"
    told = ask(**asked, controller="page-2")
    assert "steered by" in text_of(told)
    assert told[-1]["reason"] == "leased"
    assert "needs the path" in text_of(ask(verb="set", path="optimizer.lr", controller="page-1"))
    for senseless, said in (
        ({"verb": "stpo"}, "did you mean 'stop'"),
        ({"verb": "fork", "edits": ["--on"]}, "PATH=VALUE"),
        ({"verb": "fork", "edits": ["optimiser.lr=0.5"]}, "no such knob; did you mean optimizer.lr?"),
    ):
        assert said in text_of(ask(**senseless))
    assert len(control.pending(run.folder)) == 0


def test_a_run_that_ends_before_it_answers_is_told(ask: Ask, run: Run) -> None:
    told = ask(verb="pause")
    until(lambda: states(told) == ["asked"])
    write_state(run.folder, status="failed")
    assert text_of(told) == "the run ended before it answered"
    assert "workbench resume" in text_of(ask(verb="pause"))


def test_a_stop_is_done_when_the_run_has_ended_by_itself(ask: Ask, run: Run) -> None:
    told = ask(verb="stop")
    until(lambda: states(told) == ["asked"])
    write_state(run.folder, status="stopped")
    assert text_of(told) == "the run has ended"
    assert states(told)[-1] == "done"


def test_a_lease_is_claimed_renewed_taken_over_and_let_go(ask: Ask, run: Run) -> None:
    def asked(verb: str, controller: str, **more: Any) -> tuple[str, str]:
        told = ask(verb=verb, controller=controller, **more)
        until(lambda: bool(told))
        return told[-1]["state"], read_lease(run.folder).controller

    assert asked("lease", "ann") == asked("lease", "ann") == ("done", "ann")
    assert asked("lease", "bob") == ("refused", "ann")
    assert asked("lease", "bob", take_over=True) == ("done", "bob")
    assert asked("release", "ann") == ("done", "bob"), "nobody lets go of what is another's"
    assert asked("release", "bob") == ("done", "")


def test_no_answer_in_time_is_told_too(kernel: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.1)
    told = kernel(verb="pause")
    until(lambda: states(told) == ["asked", "late"])
    assert {answer["id"] for answer in told} == {"page-1"}


def test_foreign_runs_and_words_start_no_thread(kernel: Ask) -> None:
    before = threading.active_count()
    for message in ({"run": "other"}, {"run": ["x"]}, {"type": "_tell"}):
        assert kernel(**{"verb": "stop", **message}) == []
    assert threading.active_count() == before


def test_what_a_fork_would_change_is_told_and_nothing_is_made(
    kernel: Ask, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = run.folder.checkpoints / "step-7"
    saved.mkdir(parents=True)
    write_json(saved / "state.json", {"step": 7, "tokens": 700, "seconds": 1.0, "overrides": {"optimizer.lr": 0.25}})
    assert text_of(kernel(verb="try_fork", step=7, edits=["optimizer.lr=0.5", "budget=300 steps"])) == (
        "budget.amount 200.0 → 300.0, optimizer.lr 0.25 → 0.5; 293 of 300 steps are left (budget 200 steps → 300 steps)"
    ), "against what was in force"
    untouched = "nothing changes: the fork repeats this run"
    assert text_of(kernel(verb="try_fork", step=7, edits=[])) == f"{untouched}; 193 of 200 steps are left"
    for knob, said in (("optimizer.lr", "change of optimizer.lr"), ("data.seed", "changes of optimizer.lr, data.seed")):
        add_event(run.folder.telemetry, 7, "knob", "turned", path=knob, value=0.3)
        told = text_of(kernel(verb="try_fork", step=7, edits=[]))
        assert told == f"{untouched} as it was at step 7, without the later {said}; 193 of 200 steps are left"
    for edit, said in (
        ("architecture.layers=9", "a fork cannot change"),
        ("step=5", "step"),
        ("budget=5 steps", "spent"),
    ):
        told = kernel(verb="try_fork", step=7, edits=[edit])
        assert said in text_of(told)
        assert states(told) == ["refused"]
    assert "it has those of 7" in text_of(kernel(verb="try_fork", step=8, edits=[]))
    monkeypatch.setattr(ForkPoint, "of", lambda *_: pytest.fail("the checkpoint was read, and torch loaded, before it"))
    misspelt = {"step": 7, "edits": ["optimiser.lr=0.5"]}
    said = "optimiser.lr: this run has no such knob; did you mean optimizer.lr?"
    assert text_of(kernel(verb="try_fork", **misspelt)) == text_of(kernel(verb="fork", **misspelt)) == said
    assert [folder.name for folder in run.folder.path.parent.iterdir()] == [run.id]
