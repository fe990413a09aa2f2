"""The measurement of telemetry's cost measures what it says."""

from __future__ import annotations

import pytest

from workbench.recipe import Recipe
from workbench.training.overhead import telemetry_overhead


def test_alternates_and_reports_every_pair(tiny: Recipe) -> None:
    found = telemetry_overhead(tiny, rounds=3, steps=5)
    assert len(found["pairs"]) == 3
    low, high = found["range"]
    assert low <= found["overhead"] <= high
    assert found["on_ms"] > 0
    assert found["off_ms"] > 0
    with pytest.raises(ValueError, match=r"multiple of execution\.layers_every 5"):
        telemetry_overhead(tiny, steps=7)
