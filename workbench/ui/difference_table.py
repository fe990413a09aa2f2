"""The table of what differs: path, there, here, and a button per row that takes the other side's value."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from workbench.ui.differences import Difference
from workbench.ui.knob_help import value_text


class DifferenceTable(anywidget.AnyWidget):
    """Shows differences and asks for the other side's values.

    Args:
        take: called with the path of a row whose value there is wanted here.

    Attributes:
        rows: ``{path, there, here, there_full, here_full}``, all text.
        there: heading of the other side.
        complaint: why there is nothing to compare with, else empty.
    """

    # As text: given a path, anywidget keeps every widget that was ever made alive, to reload it when the file changes.
    _esm = (Path(__file__).parent / "difference_table.js").read_text(encoding="utf-8")

    rows = traitlets.List(traitlets.Dict()).tag(sync=True)
    there = traitlets.Unicode().tag(sync=True)
    complaint = traitlets.Unicode().tag(sync=True)

    def __init__(self, take: Callable[[str], None]) -> None:
        super().__init__()
        self._take = take
        self.on_msg(self._on_message)

    def show(self, there: str, found: Sequence[Difference]) -> None:
        """Show what differs from the side that is called ``there``."""
        rows = [
            {
                "path": path,
                "there": value_text(theirs),
                "here": value_text(mine),
                "there_full": json.dumps(theirs, ensure_ascii=False),
                "here_full": json.dumps(mine, ensure_ascii=False),
            }
            for path, mine, theirs in found
        ]
        self._set(rows, there, "")

    def complain(self, message: str) -> None:
        """Show why there is nothing to compare with."""
        self._set([], self.there, message)

    def _set(self, rows: list[dict[str, str]], there: str, complaint: str) -> None:
        # In one message, or the table would be drawn three times.
        with self.hold_sync():
            self.rows, self.there, self.complaint = rows, there, complaint

    def _on_message(self, _widget: Any, content: Any, _buffers: Any) -> None:
        path = content.get("take") if isinstance(content, dict) else None
        # Only what is on the page: anything else is a click on a row that has gone.
        if isinstance(path, str) and any(row["path"] == path for row in self.rows):
            self._take(path)
