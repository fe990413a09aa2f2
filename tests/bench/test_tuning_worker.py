"""The worker of the sweep, in this process: real runs of a tiny model, one after another."""

from __future__ import annotations

import json

import pytest

from tests.bench.here import said
from workbench import presets
from workbench.bench import tuning_worker
from workbench.choices.data.prepare import prepare
from workbench.recipes.recipe import Recipe


@pytest.fixture
def tiny(learnable: list[str]) -> Recipe:
    return presets.fast().with_assignments(learnable).with_(budget="6 steps")


def test_runs_follow_each_other_and_repeat_themselves(tiny: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [tiny, tiny.with_(seed=1), tiny]
    lines = "".join(json.dumps({"recipe": recipe.to_dict()}) + "\n" for recipe in asked)
    ready, first, other, again = said(tuning_worker, {"recipe": tiny.to_dict()}, lines, monkeypatch)
    assert ready["ready"]["unigram_entropy"] > 2
    assert (first["steps"], first["tokens"]) == (6, 6 * 16 * 32)
    assert first["loss"] == again["loss"], "nothing of one run is left in the next"
    assert first["loss"] != other["loss"]
    assert first["evaluated_tokens"] >= 1024


def test_divergence_is_an_answer(tiny: Recipe) -> None:
    steep = tiny.with_(budget="40 steps", optimizer={"lr": 100.0, "clip_norm": None, "schedule": {"kind": "cosine"}})
    answer = tuning_worker.train(steep, prepare(steep.data))
    assert answer["loss"] is None or answer["loss"] > 10
