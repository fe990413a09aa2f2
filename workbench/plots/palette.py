"""Names made safe to draw, dashes as Plotly takes them, and which run is drawn as which line.

Colours and dashes themselves: workbench/telemetry/quantities.py.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from workbench.base.text import LONGEST_NAME, plain

if TYPE_CHECKING:
    from workbench.store.view import RunView


def places(ids: Sequence[str], held: Mapping[str, int] | None = None) -> dict[str, int]:
    """Return places of watched runs, which decide their colours: each takes the lowest one that is free and keeps it.

    Args:
        ids: of the runs, in the order in which they come. held: their places so far; those of other runs are free.

    Example:
        >>> places(["b", "c", "d"], {"a": 0, "b": 1})
        {'b': 1, 'c': 0, 'd': 2}
    """
    found = {run: held[run] for run in ids if run in held} if held else {}
    for run in ids:
        if run not in found:
            found[run] = min(set(range(len(found) + 1)) - set(found.values()))
    return {run: found[run] for run in ids}


def placed(views: Sequence[RunView]) -> list[tuple[int, RunView]]:
    """Return runs with their places: those where they are watched, else the order given."""
    held = {view.id: view.place for view in views if view.place is not None}
    found = places([view.id for view in views], held)
    return [(found[view.id], view) for view in views]


def plotly_dash(dash: Sequence[int]) -> str:
    """Return a dash of :mod:`workbench.telemetry.quantities` for Plotly.

    Example:
        >>> plotly_dash((9, 4)), plotly_dash(())
        ('9px,4px', 'solid')
    """
    return ",".join(f"{pixels}px" for pixels in dash) or "solid"


def plotly_text(text: object, longest: int = LONGEST_NAME) -> str:
    """Return ``plain`` for Plotly, which reads a subset of HTML in names, titles and annotations.

    Example:
        >>> plotly_text("<b>x")
        '&lt;b&gt;x'
    """
    return html.escape(plain(text, longest), quote=False)


def matplotlib_text(text: object, longest: int = LONGEST_NAME) -> str:
    """Return ``plain`` for matplotlib, which reads ``$...$`` as mathematics
    and hides legend entries that start with ``_``.
    """
    line = plain(text, longest).replace("\\", "/").replace("$", r"\$")
    return f" {line}" if line.startswith("_") else line
