"""Small models in training: factors that bring them to their times, and that their kernels are those of the trace."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.forecasting.machine_rates import RATES
from workbench.choices.execution import Mode
from workbench.forecasting.fitted_rates import (
    VOCABULARY,
    SmallModel,
    fitted_factors,
    models,
    optimizer_seconds,
    predicted,
)
from workbench.forecasting.meta_tensors import ModelSpec
from workbench.forecasting.pricing import priced
from workbench.forecasting.trace import trace
from workbench.ops.timing import measure

MODE = Mode("cpu", 1, "bf16", False)


def test_right_prices_stay() -> None:
    rows = np.array([[0.2, 0.3, 0.5], [0.5, 0.4, 0.1], [0.1, 0.8, 0.1]])
    assert fitted_factors(rows, np.ones(3)) == pytest.approx((1.0, 1.0, 1.0))


def test_a_part_that_costs_twice_is_found_and_no_factor_leaves_its_bounds() -> None:
    true = np.array([2.0, 1.0, 1.0])
    parts = np.array([[8.0, 1, 1], [1, 8, 1], [1, 1, 8], [6, 2, 2]])
    rows = parts / (parts @ true)[:, None]
    before, after = np.abs(rows.sum(1) - 1).mean(), np.abs(rows @ np.array(fitted_factors(rows, np.ones(4))) - 1).mean()
    assert after < 0.7 * before
    assert max(fitted_factors(rows / 20, np.ones(4))) <= 3.0
    assert min(fitted_factors(rows * 20, np.ones(4))) >= 0.3


def test_kernels_of_a_model_in_training_are_those_of_its_trace() -> None:
    recipe = models(MODE)[0]
    with SmallModel(recipe) as small:
        timing = measure({"pass": small.pass_seconds}, least_seconds=0.0, limit_seconds=0.0)["pass"]
        readings = small.readings(timing)
        assert [reading.seconds for reading in readings] == list(timing.parts)
        real = sorted(reading.operation.key for reading in readings)
        assert min(small.step_seconds()) > 0
    found = trace(ModelSpec(recipe.architecture, recipe.objective, VOCABULARY, 32), 4, 32, torch.bfloat16)
    parts = [found.shared, *(found.layers[sort] for sort in found.sorts), found.last, found.head]
    traced = sorted(operation.key for part in parts for operation in (*part.forward, *part.backward))
    missing = [key for key in set(real) if key not in traced]
    assert missing == []
    assert len(real) == pytest.approx(len(traced), rel=0.03)


def test_parts_of_a_prediction_add_up_to_what_pricing_says() -> None:
    recipe = models(MODE)[1]
    length, rows = recipe.data.longest, recipe.data.most_rows
    found = trace(ModelSpec(recipe.architecture, recipe.objective, VOCABULARY, length), rows, length, torch.bfloat16)
    prices = priced(found, RATES, False, False)
    layers = [*(prices.layers[sort] for sort in prices.sorts), prices.last]
    whole = sum(sum(p.forward) + sum(p.backward) for p in (prices.shared, *layers, prices.head))
    assert sum(predicted(recipe, RATES)) == pytest.approx(whole)
    assert optimizer_seconds(recipe, RATES) > 0
