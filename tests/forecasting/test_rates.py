"""Curves of rates."""

from __future__ import annotations

import pytest

from workbench.forecasting.rates import OptimizerRates, interpolate


def test_interpolation_runs_along_power_laws_and_goes_on_above() -> None:
    curve = ((10.0, 2.0), (1000.0, 200.0))
    assert [interpolate(curve, x) for x in (1, 10, 100, 1000, 10_000)] == pytest.approx([2, 2, 20, 200, 2000])
    assert interpolate(((10.0, 2.0),), 99.0) == 2.0
    bent = ((1.0, 1.0), (10.0, 1.0), (100.0, 10.0))
    assert [interpolate(bent, x) for x in (5, 10, 100, 1000)] == pytest.approx([1, 1, 10, 100])


def test_an_optimizers_step_is_the_sum_over_its_tensors() -> None:
    rates = OptimizerRates(matrix=((64.0, 1e-9), (512.0, 1e-8)), embedding=4e-9, vector=1e-6)
    assert rates.seconds_of([(1000, 64)], 2, 100) == pytest.approx(1e-6 + 2e-6 + 4e-7)
    assert rates.seconds_of([(1000, 64)], 2, 100, share=0.5) == pytest.approx(0.5e-6 + 1e-6 + 4e-7)
