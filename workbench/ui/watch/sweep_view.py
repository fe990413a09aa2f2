"""A sweep in a notebook cell: its picture, and a point's run or recipe at the press of a button."""

from __future__ import annotations

from html import escape
from typing import Any

import ipywidgets
from IPython.display import clear_output, display

from workbench.errors import WorkbenchError
from workbench.printable import plain
from workbench.sweeping.sweep import Sweep
from workbench.ui import cell_widgets
from workbench.ui.headless import in_page
from workbench.ui.lab.lab import Lab
from workbench.ui.page import Page
from workbench.ui.watch.experiment_view import ExperimentView


class SweepView(ExperimentView):
    """The view of a sweep; where a page shows it, with a row of controls below.

    Args:
        sweep: the sweep to show.

    Attributes:
        point: which one the buttons are about; the best to begin with.
        opened: where its run, or a Lab with its recipe, stands.
    """

    def __init__(self, sweep: Sweep) -> None:
        super().__init__(sweep)
        self.sweep = sweep
        self.point = ipywidgets.Dropdown(description="Point", layout={"width": "min(560px, 100%)"})
        watch = ipywidgets.Button(description="Watch its run", tooltip="Show the run of this point below")
        compose = ipywidgets.Button(description="Compose", tooltip="Open the recipe of this point in a Lab below")
        watch.on_click(lambda _button: self._open(lambda sweep, index: sweep.run(index).watch()))
        compose.on_click(lambda _button: self._open(
            lambda sweep, index: display(Lab(sweep.recipe(index), sweep.plan.runs_dir))))  # fmt: skip
        self.opened = ipywidgets.Output()
        self.controls = ipywidgets.VBox([Page(), ipywidgets.HBox([self.point, watch, compose]), self.opened])
        self.controls.add_class("lab-root")
        self.refresh()

    def show(self) -> SweepView:
        """Show it in the present cell, and keep it up to date until the sweep ends or the kernel does."""
        super().show()
        if in_page():
            cell_widgets.shown(self.controls)
            display(self.controls)
        return self

    def refresh(self) -> None:
        """Offer every point that there is, the best one marked; what is chosen stays."""
        now = self.sweep.standing
        options = [(self._title(each, now.best), each.point.index) for each in now.points]
        if options != list(self.point.options):
            chosen = self.point.value if self.point.options else now.best
            self.point.options = options
            self.point.value = chosen if chosen is not None else (options[0][1] if options else None)

    @staticmethod
    def _title(each: Any, best: int | None) -> str:
        score = f": {each.score:.3f}" if each.status == "done" else f" ({each.status})"
        return f"{each.point.index}  {plain(each.point.label, 60)}{score}{' - best' * (each.point.index == best)}"

    def _open(self, show: Any) -> None:
        with self.opened:
            clear_output()
            try:
                if self.point.value is not None:
                    show(self.sweep, self.point.value)
            except WorkbenchError as error:
                text = str(error)
                display({"text/html": f"<p role='alert'>{escape(text)}</p>", "text/plain": text}, raw=True)
