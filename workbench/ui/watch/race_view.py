"""A race in a notebook cell: sentences, table and picture, which follow it while somebody looks."""

from __future__ import annotations

import base64
import threading
from html import escape
from typing import Any

from IPython.display import display

from workbench.errors import WorkbenchError
from workbench.experiments.experiment_folder import ENDED
from workbench.plots.race import race_png
from workbench.racing.picture import picture_of, table_html
from workbench.racing.race import Race
from workbench.ui.headless import headless

SECONDS = 2.0
"""Between two looks."""
THREAD = "workbench-race"


class RaceView:
    """The view of a race; without a page, as it is at the moment.

    Args:
        race: the race to show.
    """

    def __init__(self, race: Race) -> None:
        self.race = race
        self._shown = False

    def show(self) -> RaceView:
        """Show it in the present cell, and keep it up to date until the race ends or the kernel does."""
        shown: Any = display({"text/html": self.html(), "text/plain": self.race.summary}, raw=True, display_id=True)
        if shown is not None and not headless() and self.race.status not in ENDED:
            threading.Thread(target=self._follow, args=(shown,), name=THREAD, daemon=True).start()
        self._shown = True
        return self

    def _ipython_display_(self) -> None:
        # `race.watch()` at the end of a cell has shown it already.
        if not self._shown:
            self.show()
        self._shown = False

    def html(self) -> str:
        """All of it without scripts, every name escaped."""
        plan, now = self.race.plan, self.race.standing
        image = base64.b64encode(race_png(picture_of(plan, now))).decode()
        lines = "<br>".join(map(escape, self.race.summary.splitlines()))
        return (
            f"<div>{lines}</div>{table_html(plan, now)}<img alt='{escape(self.race.summary, quote=True)}' "
            f"src='data:image/png;base64,{image}' style='max-width:100%'>"
        )

    def _follow(self, shown: Any) -> None:
        pause = threading.Event()
        last = ""
        while True:
            try:
                ended, summary = self.race.ended(), self.race.summary
                if summary != last or ended:
                    shown.update({"text/html": self.html(), "text/plain": summary}, raw=True)
                last = summary
            except (WorkbenchError, RuntimeError, OSError) as error:
                # Deleted, or its drivers end without a word: the cell says so, where nobody reads a thread's traceback.
                text = str(error)
                shown.update({"text/html": f"<pre>{escape(text)}</pre>", "text/plain": text}, raw=True)
                return
            if ended:
                return
            pause.wait(SECONDS)
