"""Averaged weights: against torch's own, scored and restored instead of the last ones; training goes on as without."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from tests.training.test_resume import Live, assert_same, staged, train
from workbench.recipes.recipe import Recipe
from workbench.store.evaluations import LAST_WEIGHTS_LOSS, read_evaluations
from workbench.training.averaging import averaged, decay_at, follow
from workbench.training.evaluate import evaluate_run
from workbench.training.loop import Training
from workbench.training.restored import restore


def test_it_is_torchs_average_and_at_first_a_faster_one() -> None:
    torch.manual_seed(0)
    model, average = torch.nn.Linear(5, 3), dict[str, torch.Tensor]()
    theirs = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    slow: dict[str, torch.Tensor] = {}
    for step in range(20):
        with torch.no_grad():
            for weight in model.parameters():
                weight += torch.randn_like(weight)
        follow(average, model, 0.9, step + 1000)
        theirs.update_parameters(model)
        keep = min(0.9, (1 + step) / (10 + step))
        for name, weight in model.state_dict().items():
            slow[name] = keep * slow[name] + (1 - keep) * weight if step else weight.clone()
    for name, weight in theirs.module.state_dict().items():
        torch.testing.assert_close(average[name], weight)
    again: dict[str, torch.Tensor] = {}
    torch.manual_seed(0)
    model = torch.nn.Linear(5, 3)
    for step in range(20):
        with torch.no_grad():
            for weight in model.parameters():
                weight += torch.randn_like(weight)
        follow(again, model, 0.9, step)
    for name, weight in slow.items():
        torch.testing.assert_close(again[name], weight)
    assert decay_at(0.999, 1) < 0.2
    own = model.weight.detach().clone()
    with averaged(again, model):
        assert torch.equal(model.weight, again["weight"])
    assert torch.equal(model.weight, own)
    follow(again, model, 0.0, 3)
    assert again == {}


def test_it_is_scored_kept_and_resumed_and_training_is_as_without(tiny: Recipe, live: Live) -> None:
    recipe = tiny.with_(optimizer={"average": 0.9})
    whole, parts, plain = live(recipe), live(recipe), live(tiny)
    straight = train(whole)
    assert train(parts, stop_at=10).step == 10
    assert_same(straight, train(parts, resume=True))
    without = train(plain)
    assert "average" not in without.tensors
    assert recipe.hash != tiny.hash
    assert tiny.with_(optimizer={"average": 0.0}).hash == tiny.hash
    for name, tensor in without.tensors["model"].items():
        assert torch.equal(tensor, straight.tensors["model"][name]), name
    _, trained, _ = restore(whole.folder)
    for name, weight in trained.model.named_parameters():
        assert torch.equal(weight, straight.tensors["average"][name]), name
    last, theirs = (read_evaluations(run.folder)["points"][-1]["scores"] for run in (whole, plain))
    found = evaluate_run(whole.folder)
    assert found["heldout_loss"] == pytest.approx(last["heldout_loss"]["value"], rel=1e-5)
    assert (found["weights"], evaluate_run(plain.folder)["weights"]) == ("averaged", "last")
    assert last[LAST_WEIGHTS_LOSS]["value"] == theirs["heldout_loss"]["value"] != last["heldout_loss"]["value"]
    assert LAST_WEIGHTS_LOSS not in theirs
    assert any("of the averaged weights" in event["text"] for event in whole.telemetry.events)


def test_weights_that_are_shared_out_are_refused(tiny: Recipe) -> None:
    zero = tiny.with_(optimizer={"average": 0.9}, execution={"parallel": "zero"})
    assert any(problem.path == "optimizer.average" for problem in zero.execution.parallel.problems_together(zero, 2))


def test_it_begins_anew_where_the_model_grows(tiny: Recipe, build: Callable[..., Training]) -> None:
    recipe = staged(tiny, depth={"kind": "multi_stage", "state": "copy"}, optimizer={"average": 0.9})
    training, stages = build(recipe), list[int]()
    while not training.progress.done:
        training.step()
        weights, average = dict(training.model.named_parameters()), training.assembled.average
        assert average.keys() == weights.keys()
        fresh = training.assembled.stage not in stages
        assert all(torch.equal(average[name], weight) for name, weight in weights.items()) == fresh
        stages.append(training.assembled.stage)
    assert len(set(stages)) > 1
