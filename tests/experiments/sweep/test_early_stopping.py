"""Early stopping: where it is refused, whom it ends, and the count of what it would have thrown away."""

from __future__ import annotations

import math

import pytest

from tests.forecasting.machine_rates import RATES
from workbench import presets
from workbench.base.errors import RecipeError
from workbench.experiments.budget import share_of
from workbench.experiments.sweep.early_stopping import audit, check_rule, rank_correlation, weak, why_not
from workbench.forecasting.forecast import forecast
from workbench.recipes.recipe import Recipe

LOSSES = {0: {0.25: 5.0, 0.5: 4.0}, 1: {0.25: 4.0, 0.5: 3.5}, 2: {0.25: math.nan}, 3: {0.25: 6.0, 0.5: 5.0}}


@pytest.fixture
def recipe(tiny: Recipe) -> Recipe:
    return tiny.with_(budget={"evaluations": 8})


def said(recipe: Recipe, *swept: str) -> str:
    return why_not(recipe, share_of(recipe, lambda each: forecast(each, rates=RATES)), swept)


def test_it_is_refused_where_the_middle_says_little_about_the_end(recipe: Recipe) -> None:
    hold = recipe.with_(optimizer={"schedule": {"kind": "warmup_hold_decay", "warmup": 0.1, "hold": 0.5}})
    assert said(hold, "optimizer.lr") == ""
    assert "has fallen to 56% of its peak" in said(recipe, "optimizer.lr")
    assert "'cosine'" in said(recipe.with_(optimizer={"schedule": "cosine"}), "optimizer.lr")
    assert "differ in depth" in said(hold, "optimizer.lr", "depth.kind")
    assert "make it a multiple of 4" in said(hold.with_(budget={"evaluations": 2}), "optimizer.lr")
    # Lengths in steps: 200 steps are the whole run, so half of it has passed the plateau.
    counted = {"kind": "warmup_hold_decay", "over": "steps", "warmup": 10, "hold": 50, "length": 200}
    assert "has fallen" in said(recipe.with_(optimizer={"schedule": counted}), "optimizer.lr")
    with pytest.raises(RecipeError, match="did you mean 'halving'"):
        check_rule("halfing")
    assert presets.fast().budget.evaluations % 4 == 0, "the preset can be swept with early stopping"


def test_the_worse_half_is_weak_and_one_that_diverged_the_worst() -> None:
    assert [index for index in LOSSES if weak(index, 0.25, LOSSES)] == [2, 3]
    # Three have got to the half: too few to judge.
    assert not any(weak(index, 0.5, LOSSES) for index in LOSSES)
    alike = {index: {0.25: 5.0} for index in range(6)}
    assert not any(weak(index, 0.25, alike) for index in alike)


def test_what_it_would_have_thrown_away() -> None:
    # The best at the end is the worst at a quarter: what a high rate looks like before it decays.
    losses = {index: {0.25: 6.0 - index, 0.5: 4.0 + index} for index in range(4)}
    quarter, half = audit(losses, {0: 2.0, 1: 2.1, 2: 2.5, 3: 3.0})
    assert (quarter.ended, quarter.lost, quarter.saved) == ([0, 1], pytest.approx(0.5), 0.375)
    assert quarter.agreement == pytest.approx(-1)
    assert (half.ended, half.lost, half.saved, half.agreement) == ([2, 3], 0.0, 0.25, pytest.approx(1))
    assert audit({0: {0.25: 1.0}}, {0: 1.0}) == []
    assert math.isnan(rank_correlation([1, 1], [1, 2]))
