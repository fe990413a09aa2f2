"""A race or a sweep in a notebook cell: sentences, table and picture, which follow it while somebody looks."""

from __future__ import annotations

import threading
import time
from html import escape
from typing import Any

from IPython.display import display

from workbench.base.errors import WorkbenchError
from workbench.experiments.experiment import Experiment
from workbench.experiments.experiment_folder import ENDED
from workbench.jupyter import cell_widgets
from workbench.jupyter.headless import headless

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
        self._last = "", ""
        self._ends: list[threading.Event] = []

    def show(self) -> ExperimentView:
        """Show it in the present cell, up to date until it ends, the cell is run again, or the kernel ends."""
        over = self.experiment.status in ENDED and not self.experiment.going
        shown: Any = display(self._bundle(self.experiment.summary, over), raw=True, display_id=True)
        if shown is not None and not headless() and not over:
            self._begin(shown)
        self._shown = True
        return self

    def close(self) -> None:
        """Follow it no more; what stands in cells stays."""
        while self._ends:
            self._ends.pop().set()

    def _ipython_display_(self) -> None:
        # `race.watch()` at the end of a cell has shown it already.
        if not self._shown:
            self.show()
        self._shown = False

    def _begin(self, shown: Any) -> None:
        """Have what is shown (a display handle) kept up to date."""
        cell_widgets.shown(self)
        self._ends.append(threading.Event())
        threading.Thread(target=self._follow, args=(shown, self._ends[-1]), name=THREAD, daemon=True).start()

    def _follow(self, shown: Any, end: threading.Event) -> None:
        while not end.is_set() and not self._write(shown):
            end.wait(SECONDS)

    def _write(self, shown: Any) -> bool:
        """Show what is new; returns whether nothing more will be."""
        try:
            # Runs of one that was cancelled take a step, or what they prepare, until they have stopped.
            over = self.experiment.ended() and not self.experiment.going
            now = self.experiment.summary, _minute()
            if over or now != self._last:
                shown.update(self._bundle(now[0], over), raw=True)
            self._last = now
        except (WorkbenchError, RuntimeError, OSError) as error:
            # Deleted, or its drivers end without a word: the cell says so, where nobody reads a thread's traceback.
            text = str(error)
            shown.update({"text/html": f"<pre>{escape(text)}</pre>", "text/plain": text}, raw=True)
            return True
        return over

    def _bundle(self, summary: str, over: bool) -> dict[str, str]:
        """Return the content of the cell; a copy saved before the end says that it cannot follow."""
        seen = "" if over else (
            f"As of {_minute()}. A saved copy stays as it is: {self.experiment.opened_by}.watch() in a new cell shows "
            "how it stands."
        )  # fmt: skip
        html = f"<p><em>{escape(seen)}</em></p>" if seen else ""
        return {"text/html": html + self.experiment.html(), "text/plain": "\n".join(filter(None, (seen, summary)))}


def _minute() -> str:
    return time.strftime("%Y-%m-%d %H:%M")
