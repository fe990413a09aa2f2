"""A recipe's steps and memory, measured in a process of its own, in turns with the calibration's model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.forecasting.machine_rates import RATES
from workbench import presets
from workbench.bench.contender import Contender
from workbench.bench.forecast import WORKER, compare


@pytest.mark.process
def test_a_recipe_and_the_reference_take_turns(learnable: list[str], tmp_path: Path) -> None:
    recipe = presets.fast().with_assignments([*learnable, "budget.amount=5"])
    setting = {"name": "reference", "recipe": recipe.to_dict(), "reference": True}
    reference = Contender(WORKER, setting, tmp_path / "log")
    try:
        found = compare(recipe, 5, RATES, reference)
    finally:
        reference.kill()
    assert found["parameters_agree"]
    assert found["flops_error"] == pytest.approx(0, abs=0.02)
    assert found["measured"]["seconds"] > 0
    assert found["measured"]["compile_seconds"] == found["forecast"]["compile_seconds"] == 0.0
    assert found["measured"]["memory_bytes"] > 4 * 3 * 100_000
    assert found["slower"] > 0
    assert found["same_speed_error"] == pytest.approx((1 + found["time_error"]) * found["slower"] - 1)
