"""Forecasts of recipes and of runs, kept by recipe; the machine is measured where that disturbs nobody."""

from __future__ import annotations

import contextlib
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workbench.base.errors import WorkbenchError
from workbench.client.fork_point import own_part
from workbench.client.run import Run
from workbench.client.run_list import runs
from workbench.plots.forecast_facts import whole_forecast
from workbench.recipes.recipe import Recipe
from workbench.store.folder import read_json, write_json

KEPT = 16
"""Forecasts kept by recipe, so that a launch finds the one that was on the screen."""
TRAINING = ("starting", "running")
"""Statuses of runs that a measurement would disturb, and that would disturb it."""


class NotMeasuredError(Exception):
    """The machine would have to be measured, which somebody has to ask for."""


class OvertakenError(Exception):
    """A measurement is not wanted any more."""


class Forecasts:
    """The forecasts that are known; makes others.

    Args:
        runs_dir: the runs folder in which to look for runs that train.
        check_wanted: called several times a second while the machine is measured, with the recipe, whether it is
            composed (else that of a run), and the seconds so far; may raise :class:`OvertakenError`, which ends it.

    Attributes:
        kept: by hash of the recipe, the newest last.
        allowed: whether the user has asked for the next measurement, whoever trains meanwhile.
        measuring: whether the machine is measured now.
    """

    def __init__(self, runs_dir: str | Path | None, check_wanted: Callable[[Recipe, bool, float], None]) -> None:
        self._runs_dir, self._check_wanted = runs_dir, check_wanted
        self.kept: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self.allowed = self.measuring = False
        # Of the run that is compared, where none was kept with it.
        self._afterwards: tuple[str, dict[str, Any]] = ("", {})

    def of_recipe(self, recipe: Recipe) -> dict[str, Any]:
        """Return the forecast of a recipe, made now and kept.

        Raises:
            NotMeasuredError: runs train, and this machine is not measured.
            OvertakenError: see ``check_wanted``.
            WorkbenchError: the recipe cannot be carried out here, or the machine could not be measured.
        """
        found = self.kept[recipe.hash] = self._made(recipe, composed=True)
        while len(self.kept) > KEPT:
            self.kept.popitem(last=False)
        return found

    def of_run(self, run: Run) -> dict[str, Any]:
        """Return the forecast kept with a run, else of its recipe now; the one at hand is kept with it.

        Of a fork it is of what that has left to train. One that was provisional is made anew once the run, or another
        one, has found what was open.

        Raises:
            NotMeasuredError, OvertakenError, WorkbenchError: as :meth:`of_recipe`; a run measures nothing unasked.
        """
        there = whole_forecast(read_json(run.folder.forecast))
        if there is not None and not there.get("provisional"):
            return there
        recipe, after = own_part(run.folder, run.recipe)
        if recipe.objects:
            raise WorkbenchError(f"no forecast: {', '.join(recipe.objects)} of this run were a Python program's own")
        found = self.kept.get(recipe.hash, there)
        if found is not None and settled_since(found, recipe):
            found = self._made(recipe, composed=False)
        if found is not None:
            found = found | after
            # A forecast that cannot be kept can still be shown: a read-only folder, a full disk.
            with contextlib.suppress(OSError):
                write_json(run.folder.forecast, {**found, "made": time.time()}, durable=False)
            return found
        if self._afterwards[0] != run.id:
            self._afterwards = run.id, self._made(recipe, composed=False) | after
        return self._afterwards[1]

    def _made(self, recipe: Recipe, composed: bool) -> dict[str, Any]:
        # Here: it brings the trainer's modules along, a second of imports that no page must wait for.
        from workbench.forecasting.forecast import forecast

        began, mine = time.monotonic(), False

        def begin(_line: str) -> None:
            nonlocal began, mine
            if mine:  # it has waited for another process that measures
                return
            # One click, one measurement: of another mode, later, under other runs, it is asked again. Looking at a run
            # must not start one that nobody has asked for.
            allowed, self.allowed = self.allowed, False
            if not allowed and not (composed and not any(run.status in TRAINING for run in runs(self._runs_dir))):
                raise NotMeasuredError
            self.measuring = mine = True
            began = time.monotonic()
            self._check_wanted(recipe, composed, 0.0)

        def poll() -> None:
            # Until it may measure, what is told is of whoever measures now.
            if mine:
                self._check_wanted(recipe, composed, time.monotonic() - began)

        try:
            return forecast(recipe, say=begin, poll=poll).to_dict()
        finally:
            # The other thread may be measuring while this one is refused.
            self.measuring &= not mine


def settled_since(found: dict[str, Any], recipe: Recipe) -> bool:
    """Return True if a better forecast of ``recipe`` is possible: a run has found or prepared what was open."""
    from workbench.choices.data.prepare import is_prepared

    if found.get("preparation") and is_prepared(recipe.data):
        return True
    return bool(found.get("provisional")) and not recipe.engine().provisional
