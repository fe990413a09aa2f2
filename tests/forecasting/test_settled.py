"""What an engine settles by the memory there is: a forecast by the trace, and runs that measured it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.forecasting.machine_rates import RATES
from workbench.base.errors import RecipeError
from workbench.choices.data.tokens import PreparedData
from workbench.forecasting.meta_tensors import ModelSpec
from workbench.forecasting.settled import Settled, settled
from workbench.recipes.recipe import Recipe
from workbench.training.loop import Training

Build = Callable[..., Training]
MIB = (0.8, 0.9, 1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0)


def ahead(recipe: Recipe, prepared: PreparedData) -> Settled:
    engine = recipe.engine()
    spec = ModelSpec(
        recipe.architecture, recipe.objective, prepared.vocabulary, recipe.data.longest, "plain", engine.head,
        engine.memory.operations,
    )  # fmt: skip
    return settled(engine, spec, RATES.memory_bytes)


@pytest.mark.parametrize(
    "how",
    [
        {"micro_batch_size": "auto"}, {"recompute": "budget"}, {"micro_batch_size": "auto", "compile": True},
        {"micro_batch_size": "auto", "recompute": "layers"}, {"micro_batch_size": "auto", "recompute": "operations"},
        {"recompute": "budget", "optimizer_states": "8bit"}, {"recompute": "budget", "precision": "bf16"},
        {"micro_batch_size": "auto", "head": "all"},
    ],
)  # fmt: skip
def test_a_run_settles_what_its_forecast_said(
    tiny: Recipe, prepared: PreparedData, build: Build, how: dict[str, Any]
) -> None:
    outcomes = set()
    for mib in MIB:
        recipe = tiny.with_(execution={**how, "memory_gib": mib / 1024})
        said = ahead(recipe, prepared)
        found, refusal = of_run(build, recipe)
        # The same sentence, but for the last digits.
        assert said.refusal.partition(" GiB: ")[2].split()[:6] == refusal.split()[:6], (mib, said, refusal)
        assert found in (None, (said.rows, said.memory.first)), (mib, said)
        outcomes.add(found)
    assert len(outcomes) > 2, outcomes


def of_run(build: Build, recipe: Recipe) -> tuple[tuple[int | None, int] | None, str]:
    """Rows and layers computed again, or None and why it was refused."""
    try:
        engine = build(recipe).engine
    except RecipeError as error:
        return None, str(error)
    return (engine.micro_batch_size, engine.memory.first), ""
