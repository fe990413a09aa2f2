"""A session in this process: what is said, written and answered between steps (whole runs: test_worker)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from workbench.base.cache_folder import cache_folder
from workbench.choices.optimizers.layerwise import layerwise_path
from workbench.client.launch import _with_weights
from workbench.ops.remembered import FOLDER, Benchmark, remember
from workbench.recipes.recipe import Recipe
from workbench.store import control, lease
from workbench.store.attempts import resuming
from workbench.store.checkpoints import checkpoints
from workbench.store.effective_knobs import turns_until
from workbench.store.evaluations import read_evaluations
from workbench.store.folder import RunFolder
from workbench.store.in_process import way_on
from workbench.store.state import read_state
from workbench.telemetry.streams import read_telemetry
from workbench.training import checkpoint, machine
from workbench.training.recorder import NotFinite
from workbench.training.session import Session
from workbench.training.status import Status

# A session asks git for the revision that it runs.
pytestmark = pytest.mark.process
Begin = Callable[..., Session]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """``begin(recipe, resume=False)`` -> a Session on one run folder that has taken no step yet."""
    sessions: list[Session] = []

    def _begin(recipe: Recipe, resume: bool = False) -> Session:
        folder = RunFolder(tmp_path / "run")
        folder.path.mkdir(exist_ok=True)
        recipe.save(folder.recipe)
        sessions.append(Session(folder, Status(folder), resume))
        return sessions[-1]

    yield _begin
    for session in sessions:
        session.training.close()
        if not session.writer._closed.is_set():  # run() has closed it
            session.writer.close()
        session.status.close()


def test_a_run_begins_with_the_weights_of_another_and_nothing_else_of_it(tiny: Recipe, begin: Begin) -> None:
    parent = begin(tiny.with_(budget={"amount": 6}))
    parent.run()
    last = checkpoints(parent.folder.checkpoints)[-1]
    _with_weights(parent.folder, tiny, last)
    session = begin(tiny.with_(budget={"amount": 6}, seed=5, objective={"mask_rate": 0.3}))
    saved = checkpoint.load(last).tensors["model"]
    there = session.assembled.model.state_dict()
    assert all(torch.equal(there[name], tensor) for name, tensor in saved.items())
    assert (session.training.progress.step, dict(session.assembled.optimizer.state)) == (0, {})
    origin = json.loads((parent.folder.initial / "origin.json").read_text())
    assert (origin["run"], origin["data"]) == (parent.folder.id, session.task.fingerprint)
    (parent.folder.initial / "origin.json").write_text(json.dumps({"run": "x", "data": {}}))
    with pytest.raises(checkpoint.CheckpointError, match="data have changed since run x"):
        begin(tiny)


def test_a_session_writes_everything_a_run_promises(tiny: Recipe, begin: Begin) -> None:
    session, before = begin(tiny.with_(budget={"amount": 6})), time.time()
    assert session.run() == "finished"
    state = read_state(session.folder)
    assert before <= state.started <= time.time()
    assert (state.status, state.step, state.progress, state.exit_code) == ("finished", 6, 1.0, 0)
    said = read_evaluations(session.folder)
    assert [point["step"] for point in said["heldout"]] == [3, 6]
    result = said["result"]
    assert (result["steps"], result["tokens"], result["stopped_early"]) == (6, 6 * 16 * 32, False)
    assert result["heldout_loss"] == said["heldout"][-1]["loss"]
    assert result["learned"] == "nothing yet", "six steps cannot reach word frequencies"
    assert result["bits_per_byte"] == said["heldout"][-1]["bits_per_byte"] > 0
    assert state.tokens_per_second == pytest.approx(result["tokens_per_second"], rel=0.02)
    floors = {key: said[key] for key in ("unigram_entropy", "bigram_entropy", "training_floor", "heldout_overlap")}
    assert floors["bigram_entropy"] < floors["training_floor"] < floors["unigram_entropy"]
    assert said["score"] == {"kind": "masked-only", "version": 2} | {
        key: said["score"][key] for key in ("positions", "tokens", "bytes")
    }
    environment = json.loads(session.folder.environment.read_text())
    assert floors.items() <= environment.items(), "there before the first evaluation"
    # A first measurement in a slow moment of this machine is contradicted, and that is told.
    events = [e for e in read_telemetry(session.folder.telemetry).events if e["kind"] != "measurement"]
    kinds = [event["kind"] for event in events]
    assert kinds == ["warm-up", "start", "evaluation", "evaluation", "checkpoint", "finish"]
    assert events[0]["text"].startswith("warmed up in "), "eager: nothing was compiled"
    assert [path.name for path in checkpoint.checkpoints(session.folder.checkpoints)] == ["step-6"]
    environment = json.loads(session.folder.environment.read_text())
    most = max(read_telemetry(session.folder.telemetry).series("memory_gib")[1])
    # A process that held more before does not grow by so small a model, and the kernel counts the two apart.
    assert 0.05 < environment["memory_before_gib"] < most + 0.01, "a forecast counts what comes on top"


@pytest.mark.parametrize("optimizer", ["lans", "adamw"])
def test_the_first_event_says_what_takes_the_optimizers_step(tiny: Recipe, begin: Begin, optimizer: str) -> None:
    session = begin(tiny.with_(budget={"amount": 1}, optimizer=optimizer))
    session.run()
    (start,) = [e for e in read_telemetry(session.folder.telemetry).events if e["kind"] == "start"]
    path = layerwise_path(torch.device("cpu")) if optimizer == "lans" else None
    assert start["data"]["optimizer_path"] == path
    assert start["text"].endswith(f"; optimizer step by {path}") == (path is not None)


def test_a_stop_before_the_first_step_leaves_a_run_that_can_be_resumed(tiny: Recipe, begin: Begin) -> None:
    session = begin(tiny)
    session.stop("stopped by SIGTERM")
    session.stop("asked again")
    assert session.run() == "stopped"
    assert session.stop_reason == "stopped by SIGTERM", "the first reason is the one that is told"
    said = read_evaluations(session.folder)
    assert said["result"]["stopped_early"]
    assert said["result"]["heldout_loss"] is None
    assert said["result"]["train_loss"] is None
    assert begin(tiny, resume=True).training.progress.step == 0


def test_requests_are_answered_and_refusals_change_nothing(tiny: Recipe, begin: Begin) -> None:
    session = begin(tiny)
    refused = control.send(session.folder, "set", path="architecture.layers", value=9)
    bad = control.send(session.folder, "set", path="optimizer.lr", value=-1)
    good = control.send(session.folder, "set", path="optimizer.lr", value=0.5)
    unpaused = control.send(session.folder, "resume")
    session.requests.answer()
    answers = [control.outcome(session.folder, request) for request in (refused, bad, good, unpaused)]
    assert [answer["done"] for answer in answers if answer] == [False, False, True, False]
    assert "legal: " in answers[0]["text"]
    assert "optimizer.lr" in answers[1]["text"]
    assert answers[2]["text"].startswith("optimizer.lr 0.003 -> 0.5; warning: ")
    assert answers[3]["text"] == "it is running: there is nothing to resume"
    assert session.training.recipe.optimizer.lr == 0.5
    assert session.launched == tiny, "the recipe of the run stays what was launched"


def test_an_evaluation_while_paused_does_not_say_that_the_run_is_training(tiny: Recipe, begin: Begin) -> None:
    session = begin(tiny)
    session.pause("paused on request")
    session.status.write(status="paused", message="paused on request")
    request = control.send(session.folder, "evaluate")
    session.requests.answer()
    assert control.outcome(session.folder, request)["done"]
    state = read_state(session.folder)
    assert (state.status, state.message) == ("paused", "paused on request")
    assert state.heldout_loss == pytest.approx(5.5, abs=1.0)


def test_a_knob_turned_after_the_checkpoint_of_a_pause_is_in_that_of_the_stop(tiny: Recipe, begin: Begin) -> None:
    session = begin(tiny)
    session.training.step()
    session.pause("paused on request")
    session.save()
    control.send(session.folder, "set", path="optimizer.lr", value=0.25)
    session.requests.answer()
    session.save()
    again = begin(tiny, resume=True)
    assert again.training.progress.step == 1
    assert again.training.recipe.optimizer.lr == 0.25
    again.stop("seen")
    again.run()
    assert [turn.value for turn in turns_until(again.folder, 1)] == [0.25]


@pytest.mark.parametrize("paused", [False, True])
def test_a_change_that_breaks_the_run_costs_nothing(tiny: Recipe, begin: Begin, paused: bool) -> None:
    session = begin(tiny.with_(budget={"amount": 60}))
    session.training.step()
    session.training.step()
    # Weights grow 99-fold a step.
    for path, value in (("optimizer.lr", 100.0), ("optimizer.weight_decay", 1.0)):
        control.send(session.folder, "set", path=path, value=value)
    session.requests.answer()
    if paused:  # its checkpoint holds the change, too
        session.save()
    session.training.step()
    session.save()
    with pytest.raises(NotFinite, match=r"resume goes on from step 2, before optimizer\.lr 0\.003 -> 100.0, .* -> 1"):
        session.run()
    assert (read_state(session.folder).resume_step, read_state(session.folder).repeats) == (2, False)
    assert resuming(session.folder).startswith("resuming from step-2, from before the change")
    again = begin(session.launched, resume=True)
    assert (again.training.progress.step, again.training.recipe) == (2, session.launched)
    assert (again.folder.checkpoints / "step-3.failed").exists()
    # The next resume has nothing to go back from.
    assert (read_state(again.folder).resume_step, resuming(again.folder)) == (None, "resuming from the last checkpoint")
    again.stop("seen")
    again.run()
    assert turns_until(again.folder, 60) == [], "the change was undone"


def test_a_failure_that_a_resume_only_repeats_is_marked(tiny: Recipe, begin: Begin) -> None:
    session = begin(tiny.with_(optimizer={"lr": 100.0, "weight_decay": 1.0}))
    session.save()
    with pytest.raises(NotFinite, match="a resume would only repeat it: fork step 0 with what helps"):
        session.run()
    assert read_state(session.folder).repeats
    assert way_on(session.folder, "failed") == "; " + (
        "a resume would only repeat what failed: change the recipe, and launch or fork that"
    )


def test_the_checkpoint_of_before_a_change_stays(tiny: Recipe, begin: Begin) -> None:
    session = begin(tiny)
    session.training.step()
    control.send(session.folder, "set", path="optimizer.lr", value=0.004)
    session.requests.answer()
    for _ in range(3):
        session.training.step()
        session.save()
    assert [path.name for path in checkpoints(session.folder.checkpoints)] == ["step-1", "step-3", "step-4"]


def test_a_resumed_session_forgets_evaluations_beyond_its_checkpoint(tiny: Recipe, begin: Begin) -> None:
    session = begin(tiny)
    session.training.step()
    session.evaluate(final=False)
    session.save()
    session.training.step()
    session.evaluate(final=False)
    again = begin(tiny, resume=True)
    assert [point["step"] for point in again._evaluations["points"]] == [1]
    fresh = begin(tiny)
    assert fresh._evaluations["points"] == []


def test_every_request_is_an_event_that_says_who_asked_what(tiny: Recipe, begin: Begin) -> None:
    session = begin(tiny)
    control.send(session.folder, "set", path="optimizer.lr", value=0.5, by="Ann")
    refused = control.send(session.folder, "set", path="seed", value=1)
    session.requests.answer()
    events = [event for event in read_telemetry(session.folder.telemetry).events if event["kind"] == "request"]
    told = [(event["data"]["verb"], event["data"]["done"], event["step"]) for event in events]
    assert told == [("set", True, 0), ("set", False, 0)]
    assert events[0]["text"].startswith("set by Ann: optimizer.lr 0.003 -> 0.5; warning: ")
    assert events[0]["data"]["arguments"] == {"path": "optimizer.lr", "value": 0.5}
    assert events[1]["data"]["request"] == refused
    assert events[1]["text"].startswith(f"set by {lease.whoami()}: refused, ")


def test_what_was_asked_before_a_take_over_is_refused(tiny: Recipe, begin: Begin) -> None:
    session = begin(tiny)
    lease.claim(session.folder, "a", "Ann")
    before = control.send(session.folder, "stop", controller="a")
    after = control.send(session.folder, "pause", take_over=True)
    session.requests.answer()
    answers = [control.outcome(session.folder, request) for request in (before, after)]
    assert [answer["done"] for answer in answers if answer] == [False, True]
    assert "taken over" in answers[0]["text"]
    assert not session.stop_reason


def _poison(recipe: Recipe, seconds: dict[str, float]) -> Benchmark:
    """Remember ``seconds`` for the attention of a recipe, and an hour for the matrix product."""
    (attention,) = recipe.with_(execution={"attention": "auto"}).engine().benchmarks()
    remember(cache_folder() / FOLDER, "attention", attention.subject, seconds, 0.0)
    product = machine.product_benchmark(recipe.engine().mode)
    remember(cache_folder() / FOLDER, "product", product.subject, {"product": 3600.0}, 0.0)
    return attention


def test_a_run_that_contradicts_what_was_remembered_measures_again_and_says_so(
    tiny: Recipe, begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "cache"))
    recipe = tiny.with_(execution={"attention": "auto", "threads": 1}, budget={"amount": 12})
    wrong = {"plain": 3600.0, "sdpa": 1800.0}
    attention = _poison(recipe, wrong)
    session = begin(recipe)
    assert session.engine.attention == "sdpa", "what is remembered decides"
    assert session.environment["gemm_flops"] == pytest.approx(2 * 1024**3 / 3600)
    assert session.run() == "finished"
    events = {event["data"]["name"]: event for event in _measurements(session)}
    assert set(events) == {"attention", "product"}
    assert {event["step"] for event in events.values()} == {10}
    assert events["attention"]["data"]["remembered"] == wrong
    assert events["attention"]["data"]["attention"] == "sdpa"
    assert "plain took" in events["attention"]["text"]
    assert "3.6e+06 ms was remembered" in events["attention"]["text"]
    known = attention.recalled(tmp_path / "cache" / FOLDER)
    assert known is not None
    assert known == pytest.approx(events["attention"]["data"]["measured"])
    assert max(known.values()) < 60
    # MFU was a share of a product that takes an hour; at the end it is one of what this machine does.
    environment = json.loads(session.folder.environment.read_text())
    assert environment["gemm_flops"] == pytest.approx(2 * 1024**3 / events["product"]["data"]["measured"]["product"])
    assert json.loads(session.folder.evaluations.read_text())["result"]["mfu"] < 1
    shares = read_telemetry(session.folder.telemetry).series("mfu")[1]
    assert shares[0] > 1
    assert shares[-1] < 1


def test_a_run_shorter_than_that_looks_at_its_end(
    tiny: Recipe, begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "cache"))
    _poison(tiny, {"plain": 1.0, "sdpa": 1.0})
    session = begin(tiny.with_(budget={"amount": 3}))
    assert session.run() == "finished"
    assert [(event["data"]["name"], event["step"]) for event in _measurements(session)] == [("product", 3)]


def test_a_resumed_run_keeps_its_attention_whatever_was_measured_since(
    tiny: Recipe, begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "cache"))
    recipe = tiny.with_(execution={"attention": "auto"})
    _poison(recipe, {"plain": 1.0, "sdpa": 0.5})
    session = begin(recipe)
    session.stop("enough")
    session.run()
    _poison(recipe, {"plain": 0.5, "sdpa": 1.0})
    assert begin(recipe, resume=True).engine.attention == "sdpa"
    assert begin(recipe).engine.attention == "plain"
    for damage in ("[]", '{"attention": "flash"}', "{"):
        session.folder.environment.write_text(damage)
        assert begin(recipe, resume=True).engine.attention == "plain"


def _measurements(session: Session) -> list[dict[str, Any]]:
    return [event for event in read_telemetry(session.folder.telemetry).events if event["kind"] == "measurement"]
