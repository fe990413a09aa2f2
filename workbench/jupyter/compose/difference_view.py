"""The differences from where a recipe began, from a preset, or from any run: a drop-down and a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ipywidgets
import traitlets

from workbench.base import fields
from workbench.base.errors import WorkbenchError
from workbench.base.fields import at, flatten, put
from workbench.jupyter.bundles import BundledWidget, code
from workbench.jupyter.compose.composition import State
from workbench.jupyter.compose.differences import Difference, differences
from workbench.jupyter.compose.knob_help import value_text
from workbench.jupyter.compose.source_picker import SourcePicker
from workbench.jupyter.compose.sources import recipe_of, run_sources, title_of
from workbench.jupyter.light_widgets import Light
from workbench.recipes.recipe import Recipe

_ABSENT = "\N{EN DASH}"
"""In place of a knob that the other choice does not have."""


def _rows(found: Difference) -> list[dict[str, Any]]:
    """Return a knob; or a choice of another kind, and below it what it sets otherwise."""
    path, *sides = found
    if not any(isinstance(side, Mapping) and "kind" in side for side in sides):
        return [_row(path, *map(value_text, sides), *sides)]
    words = [side["kind"] if isinstance(side, Mapping) and "kind" in side else value_text(side) for side in sides]
    columns = [flatten(side) for side in sides]
    inner = [each for each in fields.differences(columns) if each != "kind"]
    return [
        _row(path, *words, *sides),
        *(
            _row(
                f"{path}.{each}",
                *(value_text(column[each]) if each in column else _ABSENT for column in columns),
                *(column.get(each) for column in columns),
            )
            | {"inside": True}
            for each in inner
        ),
    ]


def _row(path: str, here: str, there: str, mine: Any, theirs: Any) -> dict[str, Any]:
    full = {"there_full": json.dumps(theirs, ensure_ascii=False), "here_full": json.dumps(mine, ensure_ascii=False)}
    return {"path": path, "there": there, "here": here, **full}


class DifferenceTable(Light, BundledWidget):
    """Shows differences and asks for the other side's values.

    Args:
        take: called with the path of a row whose value there is wanted here.

    Attributes:
        rows: ``{path, there, here, there_full, here_full}``, all text; ``inside`` those that belong to the choice
            above, which is taken whole.
        complaint: why there is nothing to compare with, else empty.
    """

    _code = code("difference_table")

    rows = traitlets.List(traitlets.Dict()).tag(sync=True)
    there = traitlets.Unicode().tag(sync=True)
    complaint = traitlets.Unicode().tag(sync=True)

    def __init__(self, take: Callable[[str], None]) -> None:
        super().__init__()
        self._take = take
        self.on_msg(self._on_message)

    def show(self, there: str, found: Sequence[Difference]) -> None:
        """Show what differs from the side that is called ``there``."""
        self._set([row for each in found for row in _rows(each)], there, "")

    def complain(self, message: str) -> None:
        """Show why there is nothing to compare with."""
        self._set([], self.there, message)

    def _set(self, rows: list[dict[str, Any]], there: str, complaint: str) -> None:
        # In one message, or the table would be drawn three times.
        with self.hold_sync():
            self.rows, self.there, self.complaint = rows, there, complaint

    def _on_message(self, _widget: Any, content: Any, _buffers: Any) -> None:
        path = content.get("take") if isinstance(content, dict) else None
        # Only what is on the page: anything else is a click on a row that has gone.
        if isinstance(path, str) and any(row["path"] == path and not row.get("inside") for row in self.rows):
            self._take(path)


class DifferenceView(Light, ipywidgets.VBox):
    """Compares a composition with another recipe.

    Args:
        change: takes over fields in which one knob has the other side's value.
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
