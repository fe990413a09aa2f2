"""The set of recipes that forecasts are held against."""

from __future__ import annotations

from workbench.bench.forecast_cases import cases


def test_cases_are_many_and_different() -> None:
    found = cases(steps=7)
    eager = {name for name, recipe in found.items() if not recipe.execution.compile}
    assert len(eager) >= 20
    assert len(found) - len(eager) >= 8
    assert len({recipe.hash for recipe in found.values()}) == len(found)
    assert {recipe.budget.amount for recipe in found.values()} == {7}
    assert len({recipe.depth.kind for recipe in found.values()}) >= 5
    assert {recipe.execution.threads for recipe in cases(threads=2).values()} == {2}
