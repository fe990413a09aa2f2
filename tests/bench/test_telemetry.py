"""The measurement of telemetry's cost measures what it says."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.base.errors import WorkbenchError
from workbench.bench.telemetry import _share, telemetry_overhead
from workbench.recipes.recipe import Recipe


def test_alternates_and_keeps_sorts_of_steps_apart(tiny: Recipe) -> None:
    found = telemetry_overhead(tiny, rounds=3, steps=5)
    low, high = found["interval"]
    assert low <= found["overhead"] <= high
    assert min(found["off_ms"], found["scalars_ms"], found["layers_ms"]) > 0
    with pytest.raises(WorkbenchError, match=r"--steps: 7 must be a multiple of execution\.layers_every 5"):
        telemetry_overhead(tiny, steps=7)
    # A fifth of the steps would carry what all are said to cost, and the low quantile is of those that do not.
    with pytest.raises(WorkbenchError, match=r"scalars_every: 2 cannot be measured; use 1, or 5"):
        telemetry_overhead(tiny.with_(execution={"scalars_every": 2}), steps=5)


def test_share_weighs_steps_with_layers_by_how_often_they_come() -> None:
    off_RS = np.full((4, 10), 0.1)
    on_RS = np.full((4, 10), 0.1)
    on_RS[:, 0] = 0.12  # one step in ten takes 20% more: 2% in all
    on_RS[0, 3] = 9.0  # a neighbour's disturbance, which must not count
    share, parts = _share(on_RS, off_RS, np.arange(10) % 10 == 0)
    assert share == pytest.approx(0.02)
    assert parts == pytest.approx({"off_ms": 100.0, "scalars_ms": 100.0, "layers_ms": 120.0})
