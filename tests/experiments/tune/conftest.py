"""Tunings of a tiny recipe on a machine that never was, and runs that have ended without having trained."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.begun import root
from tests.experiments.sweep.conftest import Starter, Trained
from tests.forecasting.machine_rates import RATES
from tests.tiny_runs import tiny_recipe
from workbench.experiments.sweep.sweep_plan import SweepPlan
from workbench.experiments.tune.tune import Tuning, begin
from workbench.experiments.tune.tuning_plan import TuningPlan, plan_tuning
from workbench.recipes.recipe import Recipe

__all__ = ["root"]
SPACE = {"optimizer.lr": "1e-4..1e-1", "architecture.layers": [2, 1, 3]}
Planned = Callable[..., tuple[TuningPlan, SweepPlan]]


@pytest.fixture
def tiny(corpus: Path) -> Recipe:
    return tiny_recipe(corpus, steps=200).with_(optimizer={"lr": 1e-3})


@pytest.fixture
def planned(tiny: Recipe, root: Path) -> Planned:
    """``planned(budget, axes, ...)`` -> the plans of a tuning and of its sweep."""

    def plan(budget: str | None = "20 min", axes: Any = SPACE, recipe: Any = tiny, **options: Any) -> Any:
        return plan_tuning(recipe, budget, axes, **{"runs_dir": root, "rates": RATES, **options})

    return plan


def held(planned: tuple[TuningPlan, SweepPlan], starter: Starter | None = None, until: str = "") -> Tuning:
    """A tuning that has ended, or has got to a stage, without a process."""
    tuning, starter = begin(*planned), starter or Trained()
    while tuning.folder.read_state()["status"] == "tuning" and (not until or tuning.stage != until):
        tuning.advance(starter, RATES)
        if not until or tuning.stage != until:
            starter.end_all()
    return tuning
