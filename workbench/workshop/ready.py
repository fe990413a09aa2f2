"""Warm a machine up: text, tokenizer, compiled blocks and rates of the presets that learners begin with."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from workbench.base.errors import RunFailed
from workbench.client.launch import launch
from workbench.forecasting.forecast import forecast
from workbench.recipes import presets
from workbench.recipes.recipe import Recipe

PRESETS = ("quickstart", "fast", "baseline")
"""Presets that the lessons begin with."""
_STEPS = {"amount": 2, "unit": "steps", "evaluations": 1, "evaluation_tokens": 1024}


@dataclass(frozen=True)
class Warmed:
    """One preset whose next run starts warm.

    Attributes:
        preset: its name. seconds: that this took; a second time takes some.
    """

    preset: str
    seconds: float

    def __str__(self) -> str:
        return f"ready {self.preset} ({self.seconds:.0f} seconds)"


def warm_up(names: Iterable[str], say: Callable[[str], None]) -> list[Warmed]:
    """Forecast each preset and train two steps of it in a scratch folder, so that all caches of this machine hold it.

    Args:
        names: of presets. say: takes a line for each.

    Raises:
        RecipeError: no such preset.
        RunFailed: one does not train here; the message says why.
    """
    recipes = [presets.get(name) for name in names]
    return [_warmed(recipe, say) for recipe in recipes]


def _warmed(recipe: Recipe, say: Callable[[str], None]) -> Warmed:
    began = time.monotonic()
    forecast(recipe)
    with tempfile.TemporaryDirectory(prefix="workbench-ready-") as folder:
        short = recipe.with_(name=f"ready-{recipe.name}"[:40], budget=_STEPS)
        run = launch(short, on="inline", runs_dir=folder, queue=False, say=None)
        try:
            run.wait()
        except RunFailed as error:
            raise RunFailed(f"preset '{recipe.name}' does not train here: {error}") from None
    done = Warmed(recipe.name, round(time.monotonic() - began, 1))
    say(str(done))
    return done
