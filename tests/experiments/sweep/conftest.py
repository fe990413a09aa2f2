"""Sweeps of a tiny recipe on a machine that never was, and runs that have ended without having trained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.begun import Waiting, root, tiny
from tests.forecasting.machine_rates import RATES
from workbench.experiments.sweep.sweep import Sweep, begin
from workbench.experiments.sweep.sweep_plan import Point, SweepPlan, plan_sweep
from workbench.recipes.recipe import Recipe
from workbench.store.folder import RunFolder, write_json
from workbench.store.state import write_state

__all__ = ["root", "tiny"]
FLOOR = 3.0
SPACE = {"optimizer.lr": [1e-3, 2e-3, 4e-3], "architecture.layers": [1, 2]}
Planned = Callable[..., tuple[SweepPlan, list[Point]]]


@pytest.fixture
def planned(tiny: Recipe, root: Path) -> Planned:
    """``planned(space, ...)`` -> plan and points of a sweep over rates and layers."""

    def plan(space: dict[str, Any] | None = None, recipe: Recipe = tiny, **options: Any) -> Any:
        found, points = plan_sweep(recipe, space or SPACE, **{"runs_dir": root, "rates": RATES, **options})
        return replace(found, at_once=2), points

    return plan


def loss(values: dict[str, Any], seed: int = 1000) -> float:
    """Best at a rate of 2e-3; a second layer is worth 0.1, a seed 0.01."""
    rate = {1e-3: 0.2, 2e-3: 0.0, 4e-3: 0.3}.get(values.get("optimizer.lr", 2e-3), 0.4)
    return 2.0 + rate - 0.1 * (values.get("architecture.layers") == 2) + 0.01 * (seed % 3)


def finish(folder: RunFolder, loss: float, seconds: float = 2.0, rungs: tuple[float, ...] = (0.5, 0.4)) -> None:
    """A run's folder as one that has finished leaves it; ``rungs``: losses above the last at 1/4 and 1/2."""
    folder.path.mkdir(parents=True, exist_ok=True)
    points = [{"step": step, "loss": loss + more} for step, more in zip((50, 100, 200), (*rungs, 0.0), strict=True)]
    write_json(folder.evaluations, {
        "score": {"kind": "masked-only", "version": 2}, "unigram_entropy": FLOOR, "bigram_entropy": 0.5,
        "heldout": points, "result": {"heldout_loss": loss, "bits_per_byte": loss / 3, "steps": 200,
                                      "seconds": seconds, "learned": "neighbours"},
    })  # fmt: skip
    write_json(folder.recipe, {"name": folder.id, "budget": {"amount": 200, "unit": "steps"}})
    write_state(folder, status="finished", progress=1.0)


class Starter(Waiting):
    """Runs of a sweep that end when told."""

    def __init__(self, loss: Callable[..., float] = loss) -> None:
        super().__init__()
        self.loss = loss

    def end_all(self) -> None:
        """The runs that are going end."""
        for folder, recipe in self.going:
            values = {"optimizer.lr": recipe.optimizer.lr, "architecture.layers": recipe.architecture.layers}
            finish(folder, self.loss(values, recipe.seed), seconds=float(recipe.architecture.layers))
        self.going.clear()


def paying(recipe: Recipe) -> float:
    """A rate of 8e-3 is best; a layer less is worth 0.2; a third one a hair, which is luck; Lion is worse."""
    rate = abs(recipe.optimizer.lr / 8e-3 - 1) ** 0.5
    layers = {1: -0.2, 2: 0.0, 3: -0.001}[recipe.architecture.layers]
    return 1.0 + rate + layers + 0.5 * (recipe.optimizer.kind == "lion") + 0.01 * (recipe.seed % 2)


class Trained(Starter):
    """Runs that end with what their recipe pays."""

    def end_all(self) -> None:
        for folder, recipe in self.going:
            finish(folder, paying(recipe))
        self.going.clear()


def held(planned: tuple[SweepPlan, list[Point]], starter: Starter | None = None) -> Sweep:
    """A sweep that has ended, without a process."""
    sweep, starter = begin(*planned), starter or Starter()
    while sweep.folder.read_state()["status"] == "sweeping":
        sweep.advance(starter, RATES)
        starter.end_all()
    return sweep
