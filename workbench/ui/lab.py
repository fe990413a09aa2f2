"""The Lab: compose a recipe on the left, watch runs on the right, all runs below."""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ipywidgets

from workbench.errors import RunError
from workbench.recipe import Recipe
from workbench.runs.launch import launch
from workbench.runs.run import Run
from workbench.ui.composer import Composer
from workbench.ui.monitor import Monitor
from workbench.ui.page import Page
from workbench.ui.runs_table import RunsTable

VERBS = {
    # verb: (icon, what it does, statuses in which it can be asked for)
    "pause": ("pause", "hold after the present step, keeping memory", ("running",)),
    "resume": ("play", "go on, or go on from the last checkpoint", ("paused", "stopped", "failed", "lost")),
    "stop": ("stop", "end after the present step, with a checkpoint", ("queued", "starting", "running", "paused")),
}
# Six colours and six dashes: more lines than this nobody tells apart.
WATCHED_AT_MOST = 8


class Lab(ipywidgets.Box):
    """Compose, launch, watch and stop runs from one cell.

    The Lab holds no run: a launched one is a process of its own, and the table shows what the runs folder says, so a
    restarted kernel needs nothing but ``wb.Lab()`` again.

    Args:
        recipe: what the composer starts from; the first preset by default.
        runs_dir: the runs folder; else ``$WORKBENCH_RUNS``, else ``./runs``.

    Example:
        >>> import workbench as wb
        >>> wb.Lab()  # doctest: +SKIP
    """

    def __init__(self, recipe: Recipe | None = None, runs_dir: str | Path | None = None) -> None:
        self._runs_dir = runs_dir
        self._watched: list[str] = []
        self.monitor: Monitor | None = None
        self.status = ipywidgets.HTML()
        self.status.add_class("lab-status")
        self.composer = Composer(recipe, self._composed)
        self.launch_button = ipywidgets.Button(description="Launch", icon="rocket", button_style="primary")
        self.launch_button.on_click(lambda _button: self._safely(self._launch))
        self.table = RunsTable(runs_dir)
        self.buttons = {verb: self._button(verb) for verb in VERBS}
        self._nothing = ipywidgets.HTML("Launch a recipe, or select a run below, to watch it here.")
        self._nothing.add_class("lab-nothing")
        self._watch = ipywidgets.VBox([self._nothing])
        self.table.observe(lambda _change: self._safely(self._selected), names="selected")
        self.table.observe(lambda _change: self._enable(), names="rows")
        super().__init__([Page(), *self._regions()])
        self.add_class("lab-root")
        self.add_class("lab-whole")
        self._composed()
        self._enable()

    def watch(self, runs: list[Run]) -> None:
        """Show these runs on the right."""
        chosen = runs[:WATCHED_AT_MOST]
        ids = [run.id for run in chosen]
        # The table sends its selection whenever rows move; a view built anew each time would blink and forget its zoom.
        if ids == self._watched:
            return
        self._watched = ids
        old, self.monitor = self.monitor, Monitor(chosen) if chosen else None
        self._watch.children = (self.monitor or self._nothing,)
        # Closed after its successor stands, so that the page never shows an empty region.
        if old is not None:
            old.close()

    def close(self) -> None:
        """Stop reading and leave the page; no run is touched."""
        self.table.close()
        if self.monitor is not None:
            self.monitor.close()
        super().close()

    def _regions(self) -> list[ipywidgets.Widget]:
        left = ipywidgets.VBox([self.composer, self.launch_button])
        left.add_class("lab-compose")
        self._watch.add_class("lab-watch")
        title = ipywidgets.HTML("<h3>Runs</h3>")
        refresh = ipywidgets.Button(icon="refresh", tooltip="read the runs folder now (it is read every two seconds)")
        refresh.on_click(lambda _button: self._safely(self.table.refresh))
        bar = ipywidgets.HBox([title, *self.buttons.values(), refresh, self.status])
        bar.add_class("lab-actions")
        below = ipywidgets.VBox([bar, self.table])
        below.add_class("lab-below")
        return [left, self._watch, below]

    def _button(self, verb: str) -> ipywidgets.Button:
        icon, what, _ = VERBS[verb]
        button = ipywidgets.Button(description=verb.capitalize(), icon=icon, tooltip=f"selected runs: {what}")
        button.on_click(lambda _button: self._safely(lambda: self._ask(verb)))
        return button

    def _launch(self) -> None:
        recipe = self.composer.recipe
        if recipe is None:
            raise ValueError("; ".join(f"{problem.path}: {problem.message}" for problem in self.composer.problems))
        run = launch(recipe, runs_dir=self._runs_dir)
        self.table.refresh()
        # After the refresh: the table drops selected ids that it does not know.
        self.table.selected = [run.id]
        self._say(f"launched {run.id}")

    def _ask(self, verb: str) -> None:
        allowed = VERBS[verb][2]
        asked, refused = [], []
        for run in (run for run in self.table.chosen() if run.status in allowed):
            # One that ended a moment ago must not keep the others from being asked.
            try:
                getattr(run, verb)()
                asked.append(run.name)
            except RunError as error:
                refused.append(str(error))
        said = [f"{verb}: asked {', '.join(asked) or 'none'}", *refused]
        self._say("; ".join(said), error=bool(refused))
        self.table.refresh()

    def _selected(self) -> None:
        self.watch(self.table.chosen())
        self._enable()

    def _composed(self) -> None:
        problems = self.composer.problems
        self.launch_button.disabled = bool(problems)
        why = "; ".join(f"{problem.path}: {problem.message}" for problem in problems)
        self.launch_button.tooltip = f"cannot launch: {why}" if why else "train this recipe in a process of its own"

    def _enable(self) -> None:
        statuses = {row["status"] for row in self.table.rows if row["id"] in self.table.selected}
        for verb, button in self.buttons.items():
            # Any of them suffices: a mixed selection is asked as far as it can be.
            button.disabled = not statuses & set(VERBS[verb][2])

    def _safely(self, do: Callable[[], Any]) -> None:
        """Errors of a handler belong where the user looks, not into the server's log."""
        try:
            do()
        except Exception as error:
            self._say(f"{type(error).__name__}: {error}", error=True)

    def _say(self, text: str, *, error: bool = False) -> None:
        kind = "lab-bad" if error else "lab-said"
        self.status.value = f"<span class='{kind}'>{html.escape(text)}</span>"
