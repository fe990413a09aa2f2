"""The recipes that forecasts are held against: many, different, and whole runs measured beside their forecast."""

from __future__ import annotations

import pytest

from workbench import presets
from workbench.bench import forecast_cases
from workbench.bench.forecast_cases import cases, compare_run, whole_runs


def test_cases_are_many_and_different() -> None:
    found = cases(steps=7)
    eager = {name for name, recipe in found.items() if not recipe.execution.compile}
    assert len(eager) >= 20
    assert len(found) - len(eager) >= 8
    assert len({recipe.hash for recipe in found.values()}) == len(found)
    assert {recipe.budget.amount for recipe in found.values()} == {7}
    assert len({recipe.depth.kind for recipe in found.values()}) >= 5
    assert {recipe.execution.threads for recipe in cases(threads=2).values()} == {2}


def test_the_recipes_are_of_a_cpu_and_long_enough_for_records_and_evaluations() -> None:
    for recipe in whole_runs().values():
        assert (recipe.execution.device, recipe.execution.threads) == ("cpu", 1)
        assert recipe.budget.amount >= 5 * recipe.execution.layers_every
        assert recipe.budget.evaluations > 1


@pytest.mark.process
def test_a_run_tells_what_its_training_took(learnable: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecast_cases, "forecast", lambda recipe: type("Ahead", (), {"memory_bytes": 1 << 30}))
    recipe = presets.fast().with_assignments([*learnable, "budget.amount=3", "execution.device=cpu"])
    found = compare_run(recipe, 1)
    (taken,), (error,) = found["measured_bytes"], found["memory_error"]
    # At least weights, gradients and two moments of some 100,000 parameters.
    assert 4 * 4 * 100_000 < taken < 1 << 30
    assert error == pytest.approx((1 << 30) / taken - 1)
