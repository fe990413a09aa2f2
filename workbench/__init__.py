"""Compose, launch, watch and measure efficient language-model pre-training.

Names load on first use, so that ``import workbench`` does not load torch.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench import choices
    from workbench.accelerated.run import accelerate
    from workbench.bridges.bridge import send
    from workbench.client.afar import follow
    from workbench.client.asking import fill, generate
    from workbench.client.launch import launch
    from workbench.client.run import Run
    from workbench.client.run_list import runs
    from workbench.client.scoring import score
    from workbench.experiments.finetune.finetune import finetune
    from workbench.experiments.open import experiment
    from workbench.experiments.race.race import race
    from workbench.experiments.sweep.sweep import sweep
    from workbench.experiments.tune.tune import tune
    from workbench.forecasting.forecast import forecast
    from workbench.jupyter.board import Board
    from workbench.jupyter.comparison import compare
    from workbench.jupyter.lab.lab import Lab
    from workbench.lessons.lesson import Lesson
    from workbench.recipes import presets
    from workbench.recipes.recipe import Recipe
    from workbench.seen.asked import rows

__version__ = "0.1.0"

_HOMES = {
    "Recipe": "workbench.recipes.recipe:Recipe",
    "accelerate": "workbench.accelerated.run:accelerate",
    "compare": "workbench.jupyter.comparison:compare",
    "presets": "workbench.recipes.presets",
    "choices": "workbench.choices",
    "finetune": "workbench.experiments.finetune.finetune:finetune",
    "fill": "workbench.client.asking:fill",
    "generate": "workbench.client.asking:generate",
    "follow": "workbench.client.afar:follow",
    "forecast": "workbench.forecasting.forecast:forecast",
    "launch": "workbench.client.launch:launch",
    "race": "workbench.experiments.race.race:race",
    "rows": "workbench.seen.asked:rows",
    "runs": "workbench.client.run_list:runs",
    "Run": "workbench.client.run:Run",
    "send": "workbench.bridges.bridge:send",
    "score": "workbench.client.scoring:score",
    "sweep": "workbench.experiments.sweep.sweep:sweep",
    "tune": "workbench.experiments.tune.tune:tune",
    "experiment": "workbench.experiments.open:experiment",
    "Lab": "workbench.jupyter.lab.lab:Lab",
    "Board": "workbench.jupyter.board:Board",
    "Lesson": "workbench.lessons.lesson:Lesson",
}
_COMPOSING = ("Recipe", "presets")
__all__ = [
    "Board", "Lab", "Lesson", "Recipe", "Run", "accelerate", "choices", "compare", "experiment", "fill", "finetune",
    "follow", "forecast", "generate", "launch", "presets", "race", "rows", "runs", "score", "send", "sweep",
    "tune",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'workbench' has no attribute '{name}'; it has {', '.join(__all__)}")
    if name in _COMPOSING and "ipykernel" in sys.modules:
        # Who composes in a notebook is about to launch: a trainer loads torch on another core while this kernel does.
        importlib.import_module("workbench.launchers.fork_server").hold()
    module, _, attribute = _HOMES[name].partition(":")
    importlib.import_module("workbench.base.loading").load(module)
    loaded = sys.modules[module]
    value = getattr(loaded, attribute) if attribute else loaded
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
