"""The Trainer from scratch to its end, on tiny recipes: real runs, scored as ours are."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
import torch

from workbench.bench import whole_trainer
from workbench.bench.ladder_tracks import TRACKS
from workbench.choices.data.prepare import prepare
from workbench.recipe import Recipe


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
    first, again = (whole_trainer.train(recipe, prepared, tuned=False) for _ in range(2))
    assert first["loss"] == again["loss"] < math.log(prepared.vocabulary.size) - 0.5
    assert (first["steps"], first["tokens"]) == (12, 12 * recipe.data.most_rows * recipe.data.longest)
    assert first["cpu_seconds"] > 0
