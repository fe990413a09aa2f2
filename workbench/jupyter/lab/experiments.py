"""The experiment that stands in the Lab in the place of curves, opened from its line in the table of runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets

from workbench.base.errors import RunError
from workbench.base.text import plain
from workbench.experiments.experiment import Experiment
from workbench.jupyter.light_widgets import Light
from workbench.jupyter.runs.named_experiments import find_experiment
from workbench.jupyter.runs.run_actions import ActionResult
from workbench.jupyter.runs.runs_table import RunsTable
from workbench.jupyter.watch.experiment_panel import ExperimentPanel
from workbench.recipes.recipe import Recipe


class LabExperiments(Light, ipywidgets.VBox):
    """Shows what :attr:`RunsTable.experiment` names. Runs that are watched from then on take its place.

    Args:
        table: of the runs. compose: puts a recipe into the forms, with words about it.

    Attributes:
        panel: the experiment that stands there; None for none.
    """

    def __init__(self, table: RunsTable, compose: Callable[[Recipe, str], None]) -> None:
        self._table, self._put = table, compose
        self.panel: ExperimentPanel | None = None
        super().__init__()
        self.add_class("lab-experiments")
        table.observe(lambda change: self._show(change["new"]), names="experiment")
        table.observe(lambda change: self._watched(change["old"], change["new"]), names="watched")

    def _show(self, name: str) -> None:
        before, self.panel = self.panel, None
        on: dict[str, Callable[..., Any]] = {
            "close": self._close,
            "watch": self._watch,
            "compose": self._compose,
            "dot": self._dot,
            "report": self._report,
        }
        try:
            if name:
                self.panel = ExperimentPanel(find_experiment(name, self._table.root), on)
        except RunError as error:
            self._table.say(ActionResult(str(error), error=True))
            self._close()
        self.children = (self.panel,) if self.panel is not None else ()
        if before is not None:
            before.close()

    def _watched(self, before: list[str], now: list[str]) -> None:
        # What was asked for last is what is shown.
        if not set(now) <= set(before):
            self._close()

    def _close(self) -> None:
        self._table.experiment = ""

    @property
    def _held(self) -> Experiment[Any, Any]:
        # Only what a panel shows can be asked for.
        assert self.panel is not None
        return self.panel.experiment

    def _watch(self, pick: str) -> None:
        run = self._held.run_of(pick)
        # One that is watched already is asked for, too.
        self._close()
        self._table.note(self._table.watch(run.id))

    def _compose(self, pick: str) -> str:
        named = f"point {pick}" if pick.isdecimal() else plain(pick)
        self._put(self._held.recipe_of(pick), f"recipe of {named} of {self._held.folder.name}")
        return f"the recipe of {named} is in the forms; undo takes it back"

    def _dot(self, pick: str) -> str:
        """Select the run of a dot that was clicked, and compose its recipe."""
        self._table.selected = [self._held.run_of(pick).id]
        return self._compose(pick)

    def _report(self) -> str:
        """Written beside the experiment, and opened over the Lab as the report of a run is."""
        panel, held = self.panel, self._held
        assert panel is not None

        def draw() -> None:
            path = held.report()
            named = f"Report of {held.folder.noun} {plain(held.folder.name, 60)}"
            sheet = {"kind": "report", "title": named, "path": str(path), "file": f"report-{held.id}.html"}
            self._table.show(ActionResult(f"{named} is saved as {path}", sheet=sheet, page=path.read_bytes()))
            panel.controls.answer = ""

        def safely() -> None:
            try:
                draw()
            except Exception as error:  # the panel is where the user who pressed looks
                panel.controls.answer = f"report: {str(error) or type(error).__name__}"

        self._table.work(safely)
        return "report: drawing the pictures"
