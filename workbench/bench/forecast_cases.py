"""Hold the recipes that forecasts are measured against: steps of varied recipes, and whole runs.

A whole run is launched as anybody's run is, and says itself how much memory its training took. It runs on a CPU: on a
GPU the allocator counts tensors, which the trained steps alone already show.
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

STEPS = 12
"""Steps of each case: enough for every stage and schedule to occur."""
STEADY = {"mask_rate": 0.2}
"""The mask rate of most cases; one case has a moving rate, which makes the heap of a CPU grow."""
FEW = {"batch_size": 8}
"""Rows of the larger presets here: a step of theirs takes seconds on one thread."""


def cases(threads: int = 1, steps: int = STEPS) -> dict[str, Recipe]:
    """Return the recipes, by name; all on the CPU's or the GPU's default."""
    eager = _eager(threads)
    found = {**eager, **_compiled(eager)}
    return {name: recipe.with_(budget={"amount": steps, "unit": "steps"}) for name, recipe in found.items()}


def _eager(threads: int) -> dict[str, Recipe]:
    execution: dict[str, Any] = {"compile": False, "threads": threads}
    moving, tiny, gpt = (
        recipe.with_(execution=execution) for recipe in (presets.fast(), presets.bert_tiny(), presets.gpt_tiny())
    )
    fast = moving.with_(objective=STEADY)
    large = {
        name: presets.get(name).with_(execution=execution, data=FEW)
        for name in ("baseline", "bert", "gpt2_like", "llama_like")
    }
    depth = {
        name: presets.get(name).with_(execution=execution, objective=STEADY)
        for name in ("pld", "raptr", "stacking", "mslt", "freeze")
    }
    return {
        **large,
        "bert_tiny": tiny.with_(data=FEW),
        "bert_tiny, 2 x 768": tiny.with_(data={"batch_size": 4}, architecture={"layers": 2, "width": 768, "heads": 12}),
        "gpt_tiny, fp32": gpt.with_(data=FEW, execution={"precision": "fp32"}),
        "modernbert_like": presets.modernbert_like().with_(execution=execution, data={"batch_size": 2}),
        **depth,
        "fast": fast,
        "fast, moving masks": moving,
        "fast, fp32": fast.with_(execution={"precision": "fp32"}),
        "fast, width 64, 8 layers": fast.with_(architecture={"width": 64, "heads": 2, "layers": 8}),
        "fast, 4 rows of 32": fast.with_(data={"sequence_length": 32, "batch_size": 4}),
        "fast, rows of 256": fast.with_(data={"sequence_length": 256, "batch_size": 4}),
        "fast, rows of 512, sdpa": fast.with_(
            data={"sequence_length": 512, "batch_size": 2}, execution={"attention": "sdpa"}
        ),
        "fast, 32 rows in eights": fast.with_(data={"batch_size": 32}, execution={"micro_batch_size": 8}),
        "fast, muon": fast.with_(optimizer={"kind": "muon"}),
        "fast, lans": fast.with_(optimizer={"kind": "lans"}),
        "transformers bert": fast.with_(
            architecture={"kind": "transformers", "model": "bert", "layers": 3, "width": 192, "heads": 3}
        ),
    }


def _compiled(eager: dict[str, Recipe]) -> dict[str, Recipe]:
    """Return some of them compiled: half a minute each."""
    names = (
        "fast", "fast, fp32", "fast, width 64, 8 layers", "fast, rows of 256", "bert_tiny", "llama_like", "pld",
        "gpt_tiny, fp32",
    )  # fmt: skip
    return {f"{name}, compiled": eager[name].with_(execution={"compile": True}) for name in names}


RUN_STEPS = 60
"""Steps of a whole run; a heap grows for some twenty."""
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


def whole_runs(threads: int = 1, steps: int = RUN_STEPS) -> dict[str, Recipe]:
    """Return the recipes of whole runs, by name."""
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
