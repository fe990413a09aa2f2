"""What differs from where a recipe began, from a preset, or from any run: a drop-down and a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ipywidgets

from workbench.errors import WorkbenchError
from workbench.fields import at, put
from workbench.recipe import Recipe
from workbench.ui.composition import State
from workbench.ui.difference_table import DifferenceTable
from workbench.ui.differences import differences
from workbench.ui.source_picker import SourcePicker
from workbench.ui.sources import recipe_of, run_sources, title_of


class DifferenceView(ipywidgets.VBox):
    """Compares a composition with another recipe.

    Args:
        change: takes over fields in which one knob has the other side's value.
        runs_dir: the runs folder; else ``$WORKBENCH_RUNS``, else ``./runs``.
    """

    def __init__(self, change: Callable[[Mapping[str, Any]], None], runs_dir: str | Path | None = None) -> None:
        self._change, self._runs_dir = change, runs_dir
        self._state: State | None = None
        self.against = SourcePicker(
            "against", "what to compare with", lambda: run_sources(runs_dir), "what this began with"
        )
        self.against.observe(lambda _change: self._compare(), names="value")
        self.table = DifferenceTable(self._take)
        super().__init__([self.against, self.table])
        self.add_class("lab-compare")

    def show(self, state: State) -> None:
        """Compare ``state`` with what is picked."""
        self._state = state
        self._compare()

    def _compare(self) -> None:
        if self._state is None:
            return
        try:
            there = self._there(self._state)
        except WorkbenchError as error:
            self.table.complain(str(error))
            return
        title = title_of(self.against.value) if self.against.value else self._state.began
        self.table.show(title, differences(self._state.fields, there.to_dict()))

    def _there(self, state: State) -> Recipe:
        return recipe_of(self.against.value, self._runs_dir) if self.against.value else state.base

    def _take(self, path: str) -> None:
        if self._state is not None:
            self._change(put(self._state.fields, path, at(self._there(self._state).to_dict(), path)))
