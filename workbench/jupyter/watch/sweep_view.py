"""A sweep in a notebook cell: its table, one of its pictures, and a point's run or recipe at the press of a button."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

import ipywidgets
from IPython.display import clear_output, display

from workbench.base.errors import WorkbenchError
from workbench.experiments.sweep.sweep import Sweep
from workbench.jupyter import cell_widgets
from workbench.jupyter.headless import in_page
from workbench.jupyter.lab.held_widgets import close_held
from workbench.jupyter.lab.lab import Lab
from workbench.jupyter.page import Page
from workbench.jupyter.saved_output import view_bundle
from workbench.jupyter.watch.experiment_panel import ExperimentPanel
from workbench.jupyter.watch.experiment_view import ExperimentView
from workbench.jupyter.watch.saved_picture import STANDS_ABOVE


class _Below(ipywidgets.VBox):
    """The pictures and the opened run below the words of a sweep.

    Attributes:
        opened: where the run of a point, or a Lab with its recipe, stands, and ``inside`` that itself.
    """

    def __init__(self, panel: ExperimentPanel) -> None:
        self.opened = ipywidgets.Output()
        self.inside: ipywidgets.Widget | None = None
        super().__init__([Page(), panel, self.opened])
        self.add_class("lab-root")

    def fill(self, show: Callable[[], ipywidgets.Widget]) -> bool:
        """Have something shown in the place of what stands there; False where it cannot be, and why stands there."""
        # Nobody else would close it: no cell shows it.
        if self.inside is not None:
            self.inside.close()
            self.inside = None
        with self.opened:
            clear_output()
            try:
                self.inside = show()
            except WorkbenchError as error:
                text = str(error)
                display({"text/html": f"<p role='alert'>{escape(text)}</p>", "text/plain": text}, raw=True)
                return False
        return True

    def close(self) -> None:
        """Leave the page, with all that it shows and has opened, and end what follows the sweep."""
        close_held(self)
        super().close()


class SweepView(ExperimentView):
    """The view of a sweep; where a page shows it, with pictures and a row of controls below.

    Args:
        sweep: the sweep to show.

    Attributes:
        panel: its pictures, and which point the buttons are about; made when a page shows it.
    """

    def __init__(self, sweep: Sweep) -> None:
        super().__init__(sweep)
        self.sweep = sweep
        self.panel: ExperimentPanel | None = None
        self._below: _Below | None = None
        self._text: Any = None

    def show(self) -> SweepView:
        """Show it in the present cell; see :meth:`ExperimentView.show`."""
        super().show()
        if in_page():
            on = {"watch": self.watch, "dot": self.watch, "compose": self.compose}
            self.panel = ExperimentPanel(self.sweep, on, whole=False, first=self._write_text)
            self._below = below = _Below(self.panel)
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

        def show() -> Lab:
            lab = Lab(self.sweep.recipe_of(pick), self.sweep.plan.runs_dir)
            display(lab)
            return lab

        return self._open(show, f"the recipe of point {pick} is open in the Lab below")

    def _begin(self, shown: Any) -> None:
        # The panel below reads for both: of two readers one would be behind, and they would contradict each other.
        self._text = shown
        if not in_page():
            super()._begin(shown)

    def _write_text(self) -> None:
        if self._text is not None and self._write(self._text):
            self._text = None

    def _open(self, show: Callable[[], ipywidgets.Widget], words: str) -> str:
        return words if self._below is not None and self._below.fill(show) else ""
