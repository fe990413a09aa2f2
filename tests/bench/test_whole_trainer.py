"""The Trainer from scratch to its end, on tiny recipes: real runs, scored as ours are."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
import torch

from workbench.bench import whole_trainer
from workbench.bench.ladder_tracks import TRACKS
from workbench.bench.peer_transformers import arguments_of
from workbench.choices.data.prepare import prepare
from workbench.recipes.recipe import Recipe


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(params=TRACKS)
def tiny(request: pytest.FixtureRequest, learnable: list[str]) -> Recipe:
    return TRACKS[request.param].base(12).with_assignments([*learnable, "data.tokenizer.algorithm=wordpiece"])


def test_a_model_that_knows_nothing_scores_the_logarithm_of_the_vocabulary(tiny: Recipe) -> None:
    prepared = prepare(tiny.data)
    model = (whole_trainer.gpt2 if tiny.objective.causal else whole_trainer.bert)(tiny, prepared.vocabulary, None)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert whole_trainer.score(model, tiny, prepared) == pytest.approx(math.log(prepared.vocabulary.size), abs=1e-5)


def test_a_run_learns_and_repeats_itself(tiny: Recipe) -> None:
    prepared = prepare(tiny.data)
    recipe = tiny.with_(optimizer={"lr": 3e-3})
    first, again = (whole_trainer.train(recipe, prepared, tuned=None) for _ in range(2))
    assert first["loss"] == again["loss"] < math.log(prepared.vocabulary.size) - 0.5
    assert (first["steps"], first["tokens"]) == (12, 12 * recipe.data.most_rows * recipe.data.longest)
    assert first["cpu_seconds"] > 0


def test_the_tuned_one_takes_the_way_of_the_fastest_trial(tiny: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each way is tried in every round, and one slow moment does not decide."""
    tried: list[dict[str, bool]] = []
    steps: set[float] = set()

    def train(recipe: Recipe, prepared: object, tuned: dict[str, bool]) -> dict[str, object]:
        steps.add(recipe.budget.amount)
        tried.append(tuned)
        busy = 9.0 if len(tried) <= len(whole_trainer.WAYS) else 0.0
        return {"device": "cpu", "cpu_seconds": busy + 1.0 + tuned["bf16"] - 0.5 * tuned["torch_compile"]}

    monkeypatch.setattr(whole_trainer, "train", train)
    prepared = prepare(tiny.data)
    assert whole_trainer.fastest(tiny.with_(budget={"amount": 600}), prepared) == {"bf16": False, "torch_compile": True}
    assert tried == [*whole_trainer.WAYS] * whole_trainer.TRIAL_ROUNDS
    tried.clear()
    for run in (12, 100):
        whole_trainer.fastest(tiny.with_(budget={"amount": run}), prepared)
    assert steps == {8, 12, whole_trainer.TRIAL_STEPS}, "no trial of a short ladder takes as long as the ladder"
    assert tried == [*whole_trainer.WAYS] * 2, "once before each"
    tried.clear()
    whole_trainer.fastest(tiny, prepared, eager=True)
    assert tried == [{"bf16": True, "torch_compile": False}, {"bf16": False, "torch_compile": False}]


def test_a_way_is_what_the_trainer_is_told() -> None:
    recipe = TRACKS["masked"].base(12)
    arguments = arguments_of(recipe, "", True, bf16=False, torch_compile=False)
    assert (arguments.bf16, arguments.torch_compile, arguments.optim) == (False, False, "adamw_torch_fused")
