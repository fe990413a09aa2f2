"""Know the widgets that each cell shows: run again, a cell takes its old ones away, with their threads and memory.

ipywidgets keeps every widget until it is closed, and nobody closes what a cell showed an hour ago: after twenty runs of
``run.watch()`` twenty threads would follow the run and twenty models would be drawn from in the page.
"""

from __future__ import annotations

from typing import Any, Protocol

from IPython.core.getipython import get_ipython


class Shown(Protocol):
    """A widget, or what else follows a run or an experiment until it is closed."""

    def close(self) -> None:
        """End what it does."""


_shown: dict[str, list[Shown]] = {}
"""Cell id -> what its last run showed."""
_replaced: dict[str, list[Shown]] = {}
"""Cell id -> what the run before the present one showed."""
_listening: set[int] = set()


def shown(widget: Shown) -> None:
    """Note that the present cell shows ``widget``; it is closed once no cell shows it any more.

    Where cells have no ids (a terminal, papermill, the page of a client that sends none) nothing is noted.
    """
    shell: Any = get_ipython()
    cell = _present_cell(shell)
    if cell is None:
        return
    if id(shell) not in _listening:
        _listening.add(id(shell))
        shell.events.register("pre_run_cell", _before_cell)
        shell.events.register("post_run_cell", _after_cell)
    _shown.setdefault(cell, []).append(widget)


def forget(widget: Shown) -> None:
    """``widget`` is closed: no cell shows it."""
    for cells in (_shown, _replaced):
        for cell, widgets in list(cells.items()):
            cells[cell] = [other for other in widgets if other is not widget]
            if not cells[cell]:
                del cells[cell]


def _present_cell(shell: Any) -> str | None:
    # A cell in a terminal has no parent message, one of nbclient's no id.
    parent = shell.get_parent() if hasattr(shell, "get_parent") else {}
    found = (parent.get("metadata") or {}).get("cellId")
    return str(found) if found else None


def _before_cell(info: Any) -> None:
    if info.cell_id in _shown:
        _replaced[info.cell_id] = _shown.pop(info.cell_id)


def _after_cell(result: Any) -> None:
    # At the end rather than at once: the cell may show again what it showed before.
    for widget in _replaced.pop(result.info.cell_id, []):
        if not any(widget is other for others in _shown.values() for other in others):
            widget.close()
