"""Compose, launch, watch and measure efficient language-model pre-training.

Names load on first use, so that ``import workbench`` does not load torch.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench import choices, forecast, presets, runs
    from workbench.accelerated.run import accelerate
    from workbench.comparison import compare
    from workbench.opening import experiment
    from workbench.racing.race import race
    from workbench.recipe import Recipe
    from workbench.runs.launch import launch
    from workbench.runs.run import Run
    from workbench.sweeping.sweep import sweep
    from workbench.tuning.tune import tune
    from workbench.ui.lab.lab import Lab

__version__ = "0.1.0"

_HOMES = {
    "Recipe": "workbench.recipe:Recipe",
    "accelerate": "workbench.accelerated.run:accelerate",
    "compare": "workbench.comparison:compare",
    "presets": "workbench.presets",
    "choices": "workbench.choices",
    "forecast": "workbench.forecast",  # a callable module: see there
    "launch": "workbench.runs.launch:launch",
    "race": "workbench.racing.race:race",
    "runs": "workbench.runs",  # a callable package: see there
    "Run": "workbench.runs.run:Run",
    "sweep": "workbench.sweeping.sweep:sweep",
    "tune": "workbench.tuning.tune:tune",
    "experiment": "workbench.opening:experiment",
    "Lab": "workbench.ui.lab.lab:Lab",
}
_COMPOSING = ("Recipe", "presets")
__all__ = [
    "Lab", "Recipe", "Run", "accelerate", "choices", "compare", "experiment", "forecast", "launch", "presets", "race",
    "runs", "sweep", "tune",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'workbench' has no attribute '{name}'; it has {', '.join(__all__)}")
    if name in _COMPOSING and "ipykernel" in sys.modules:
        # Who composes in a notebook is about to launch: a trainer loads torch on another core while this kernel does.
        importlib.import_module("workbench.runs.launchers.held").hold()
    module, _, attribute = _HOMES[name].partition(":")
    importlib.import_module("workbench.loading").load(module)
    loaded = sys.modules[module]
    value = getattr(loaded, attribute) if attribute else loaded
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
