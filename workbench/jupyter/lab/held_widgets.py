"""All widgets that one shows or keeps, which nobody else would close."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ipywidgets

_OURS = "workbench.jupyter."


def held_widgets(widget: ipywidgets.Widget) -> Iterator[ipywidgets.Widget]:
    """Yield a widget and all that it shows or keeps aside (forms of closed sections), with their layouts and styles."""
    todo: list[Any] = [widget]
    seen: set[int] = set()
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, ipywidgets.Widget):
            yield one
            todo += [getattr(one, name, None) for name in one.keys]
        if isinstance(one, (tuple, list)):
            todo += one
        elif isinstance(one, dict):
            todo += one.values()
        # Our own objects alone: a run, a recipe or a library's insides hold no widgets of this Lab.
        elif type(one).__module__.startswith(_OURS):
            todo += vars(one).values() if hasattr(one, "__dict__") else ()


def close_held(widget: ipywidgets.Widget) -> None:
    """Close everything that a widget shows or keeps, but for itself."""
    # Listed first: a closed widget forgets what it holds.
    for one in list(held_widgets(widget)):
        if one is not widget:
            one.close()
