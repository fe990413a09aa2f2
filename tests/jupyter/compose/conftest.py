"""A forecast panel on a machine that needs no measuring."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jupyter.compose.measured_machine import Machine
from workbench import presets
from workbench.forecasting import calibration
from workbench.jupyter.compose.forecast_panel import ForecastPanel
from workbench.recipes.recipe import Recipe


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine()
    monkeypatch.setattr(calibration, "calibrated", machine.calibrated)
    return machine


@pytest.fixture
def recipe(learnable: list[str]) -> Recipe:
    return presets.fast().with_assignments([*learnable, "budget=50 steps"])


@pytest.fixture
def panel(machine: Machine, tmp_path: Path) -> ForecastPanel:
    return ForecastPanel(tmp_path / "runs", opened=True)
