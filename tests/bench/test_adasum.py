"""The benchmark of AdaSum: equal tokens for every arm, rates that are tuned alike."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from workbench.bench import adasum
from workbench.bench.adasum import TUNING_SEED, arms, base
from workbench.recipes.recipe import Recipe


def test_arms_read_equal_tokens_and_differ_in_nothing_else() -> None:
    found = arms(base("adamw", 4, 8192), [2, 4])
    assert list(found) == ["mean x1", "mean x2", "adasum x2", "mean x4", "adasum x4"]
    assert [arm.data.batch_size for arm in found.values()] == [4, 8, 8, 16, 16]
    assert {arm.budget.amount for arm in found.values()} == {8192}
    assert list(found["mean x4"].diff(found["adasum x4"])) == ["optimizer.combine.kind", "optimizer.combine.workers"]


def test_every_arm_is_tuned_on_a_seed_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[float, int]] = []

    def losses_of(recipes: Sequence[Recipe]) -> list[float]:
        asked.extend((recipe.optimizer.lr, recipe.seed) for recipe in recipes)
        return [abs(recipe.optimizer.lr - 8e-3) for recipe in recipes]

    monkeypatch.setattr(adasum, "losses_of", losses_of)
    options = {"optimizer": "adamw", "rows": 4, "tokens": 8192, "set": [], "times": [2], "rates": [1e-3, 2e-3, 4e-3]}
    found = adasum.measured(SimpleNamespace(**options, seeds=2))
    arm = found["arms"]["adasum x2"]
    assert (arm["rows"], arm["rate"], list(arm["tuning"])) == (8, 8e-3, [1e-3, 2e-3, 4e-3, 8e-3, 16e-3])
    assert asked[:7] == [(rate, TUNING_SEED) for rate in arm["tuning"]] + [(8e-3, 0), (8e-3, 1)]
    assert adasum.shown(found)["arms"]["adasum x2"]["beside_the_mean_of_gradients"]["median"] == 0
