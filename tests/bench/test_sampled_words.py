"""The benchmark of the sampled softmax measures what it says, at a toy's size."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.bench.sampled_words import WORDS, base, score, speeds
from workbench.recipes.recipe import Recipe


@pytest.fixture
def toy(corpus: Path) -> Recipe:
    return base("causal", 256).with_(
        data={"kind": "files", "paths": [str(corpus)], "sequence_length": 32, "batch_size": 4},
        architecture={"layers": 1, "width": 16, "heads": 2},
        execution={"compile": False, "precision": "fp32", "attention": "plain", "device": "cpu"},
        budget={"evaluation_tokens": 1024},
    )


def test_arms_take_turns_and_are_held_against_all_words(toy: Recipe) -> None:
    found = speeds(toy, rounds=2, steps=2)
    assert list(found) == list(WORDS)
    assert found[0]["speed-up"] == {"median": 1, "min": 1, "max": 1}
    assert all(arm["seconds"]["min"] > 0 for arm in found.values())


def test_a_race_scores_all_words_and_differs_by_seed(toy: Recipe) -> None:
    untrained, trained = score(toy, 64, 1, seed=0), score(toy, 64, 40, seed=0)
    assert trained < untrained - 0.3
    assert score(toy, 64, 1, seed=1) != untrained
