"""A race or a sweep in a notebook cell: sentences, table and picture, which follow it while somebody looks."""

from __future__ import annotations

import threading
from html import escape
from typing import Any

from IPython.display import display

from workbench.errors import WorkbenchError
from workbench.experiments.experiment import Experiment
from workbench.experiments.experiment_folder import ENDED
from workbench.ui.headless import headless

SECONDS = 2.0
"""Between two looks."""
THREAD = "workbench-experiment"


class ExperimentView:
    """The view of an experiment; without a page, as it is at the moment.

    Args:
        experiment: the race or sweep to show.
    """

    def __init__(self, experiment: Experiment[Any, Any]) -> None:
        self.experiment = experiment
        self._shown = False
        self._last = ""

    def show(self) -> ExperimentView:
        """Show it in the present cell, and keep it up to date until it ends or the kernel does."""
        shown: Any = display(
            {"text/html": self.experiment.html(), "text/plain": self.experiment.summary}, raw=True, display_id=True
        )
        if shown is not None and not headless() and self.experiment.status not in ENDED:
            self._begin(shown)
        self._shown = True
        return self

    def _ipython_display_(self) -> None:
        # `race.watch()` at the end of a cell has shown it already.
        if not self._shown:
            self.show()
        self._shown = False

    def _begin(self, shown: Any) -> None:
        """Have what is shown (a display handle) kept up to date."""
        threading.Thread(target=self._follow, args=(shown,), name=THREAD, daemon=True).start()

    def _follow(self, shown: Any) -> None:
        pause = threading.Event()
        while not self._write(shown):
            pause.wait(SECONDS)

    def _write(self, shown: Any) -> bool:
        """Show what is new; returns whether nothing more will be."""
        try:
            ended, summary = self.experiment.ended(), self.experiment.summary
            if summary != self._last or ended:
                shown.update({"text/html": self.experiment.html(), "text/plain": summary}, raw=True)
            self._last = summary
        except (WorkbenchError, RuntimeError, OSError) as error:
            # Deleted, or its drivers end without a word: the cell says so, where nobody reads a thread's traceback.
            text = str(error)
            shown.update({"text/html": f"<pre>{escape(text)}</pre>", "text/plain": text}, raw=True)
            return True
        return ended
