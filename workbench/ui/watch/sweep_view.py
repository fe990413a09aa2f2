"""A sweep in a notebook cell: its table, one of its pictures, and a point's run or recipe at the press of a button."""

from __future__ import annotations

from html import escape
from typing import Any

import ipywidgets
from IPython.display import clear_output, display

from workbench.errors import WorkbenchError
from workbench.sweeping.sweep import Sweep
from workbench.ui import cell_widgets
from workbench.ui.headless import in_page
from workbench.ui.lab.lab import Lab
from workbench.ui.page import Page
from workbench.ui.saved_output import view_bundle
from workbench.ui.watch.experiment_panel import ExperimentPanel
from workbench.ui.watch.experiment_view import ExperimentView
from workbench.ui.watch.saved_picture import STANDS_ABOVE


class SweepView(ExperimentView):
    """The view of a sweep; where a page shows it, with pictures and a row of controls below.

    Args:
        sweep: the sweep to show.

    Attributes:
        panel: its pictures, and which point the buttons are about; made when a page shows it.
        opened: where the run of a point, or a Lab with its recipe, stands.
    """

    def __init__(self, sweep: Sweep) -> None:
        super().__init__(sweep)
        self.sweep = sweep
        self.panel: ExperimentPanel | None = None
        self.opened = ipywidgets.Output()
        self._text: Any = None

    def show(self) -> SweepView:
        """Show it in the present cell, and keep it up to date until the sweep ends or the kernel does."""
        super().show()
        if in_page():
            on = {"watch": self.watch, "dot": self.watch, "compose": self.compose}
            self.panel = ExperimentPanel(self.sweep, on, whole=False, first=self._write_text)
            below = ipywidgets.VBox([Page(), self.panel, self.opened])
            below.add_class("lab-root")
            cell_widgets.shown(below)
            # A saved notebook has the pictures right above.
            call = f"{self.sweep.opened_by}.watch()"
            text = f"The buttons of sweep {self.sweep.folder.name} need a kernel: {call} in a new cell has them."
            display(view_bundle(below.model_id, text), raw=True)
            display(STANDS_ABOVE, raw=True)
        return self

    def watch(self, pick: str) -> str:
        """Show the run of a point, by its index as text, below; returns words for it."""
        return self._open(lambda: self.sweep.run_of(pick).watch(), f"the run of point {pick} is shown below")

    def compose(self, pick: str) -> str:
        """Open a Lab with the recipe of a point below; returns words for it."""

        def show() -> None:
            display(Lab(self.sweep.recipe_of(pick), self.sweep.plan.runs_dir))

        return self._open(show, f"the recipe of point {pick} is open in the Lab below")

    def _begin(self, shown: Any) -> None:
        # The panel below reads for both: of two readers one would be behind, and they would contradict each other.
        self._text = shown
        if not in_page():
            super()._begin(shown)

    def _write_text(self) -> None:
        if self._text is not None and self._write(self._text):
            self._text = None

    def _open(self, show: Any, words: str) -> str:
        with self.opened:
            clear_output()
            try:
                show()
                return words
            except WorkbenchError as error:
                text = str(error)
                display({"text/html": f"<p role='alert'>{escape(text)}</p>", "text/plain": text}, raw=True)
        return ""
