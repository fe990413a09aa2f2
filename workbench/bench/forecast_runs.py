"""How far the forecast of memory is off for whole runs: records of layers, evaluations and all else between steps.

Each recipe is launched as anybody's run is and says itself what its training took at most. On a CPU: a GPU's allocator
counts tensors, of which the trained steps alone are told.
"""

from __future__ import annotations

import tempfile
from typing import Any

from workbench.base.errors import WorkbenchError
from workbench.client.launch import launch
from workbench.forecasting.forecast import forecast
from workbench.recipes import presets
from workbench.recipes.recipe import Recipe
from workbench.store.measured import memory_for_training

STEPS = 60
"""Of each: a heap grows for some twenty."""
SMALL = [
    "architecture.width=128", "architecture.heads=4", "data.tokenizer.vocabulary_size=4096", "data.batch_size=16",
    "data.sequence_length=128", "execution.compile=false", "execution.device=cpu",
]  # fmt: skip
RECIPES = {
    "4 x 128": ("bert", ["architecture.layers=4"]),
    "4 x 128, states in 8 bits": ("bert", ["architecture.layers=4", "execution.optimizer_states=8bit"]),
    "4 x 128, layers computed again": ("bert", ["architecture.layers=4", "execution.recompute=layers"]),
    "8 x 128, causal": ("gpt2_like", ["architecture.layers=8"]),
}


def whole_runs(threads: int = 1, steps: int = STEPS) -> dict[str, Recipe]:
    """The recipes, by name."""
    common = [*SMALL, f"execution.threads={threads}", f"budget={steps} steps"]
    return {name: presets.get(preset).with_assignments([*common, *own]) for name, (preset, own) in RECIPES.items()}


def compare_run(recipe: Recipe, times: int) -> dict[str, Any]:
    """Forecast the memory of a recipe, run it ``times`` times, and put the two side by side.

    Returns:
        ``forecast_bytes``; of every run ``measured_bytes`` and ``memory_error``, forecast over measured minus 1.

    Raises:
        WorkbenchError: a run failed.
    """
    ahead = forecast(recipe).memory_bytes
    with tempfile.TemporaryDirectory() as folder:
        found = [_measured(recipe, folder) for _ in range(times)]
    return {"forecast_bytes": ahead, "measured_bytes": found, "memory_error": [ahead / each - 1 for each in found]}


def _measured(recipe: Recipe, folder: str) -> int:
    run = launch(recipe, runs_dir=folder, say=None)
    run.wait_blocking()
    gib = memory_for_training(run.view())
    if not gib:
        raise WorkbenchError(f"run '{run.id}' did not say what its training took")
    return round(gib * 2**30)
