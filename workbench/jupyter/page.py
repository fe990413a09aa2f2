"""The page's own part: the style, the keyboard, help, and words for screen readers, which ipywidgets lack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import traitlets

from workbench.jupyter.bundles import BundledWidget, code, style
from workbench.jupyter.light_widgets import Light
from workbench.jupyter.message_order import keep_order


class Page(Light, BundledWidget):
    """First child of every root of ours.

    It brings the style sheet, keeps JupyterLab's one-letter shortcuts off our controls (in a drop-down, "b" picks an
    entry; without this it would insert a cell), and keeps ``aria`` attributes in step with what is shown. In a
    composer it is also the line that explains the knob under the pointer or the focus, and hears the keys for undo.

    Args:
        receive: called with what the page asks for: ``{"do": "undo" | "redo" | "reset" | "close"}``,
            ``{"card": path}``, ``{"go": path}``.

    Attributes:
        resting: what the line of help says while no knob has the pointer or the focus.
    """

    _code = code("page")
    _css = style("page")

    resting = traitlets.Unicode().tag(sync=True)

    def __init__(self, receive: Callable[[dict[str, Any]], None] | None = None) -> None:
        super().__init__()
        keep_order()
        if receive is not None:
            self.on_msg(lambda _widget, content, _buffers: receive(content if isinstance(content, dict) else {}))

    def point_at(self, path: str, focus: bool = False) -> None:
        """Bring a knob into view and mark it for a moment; with ``focus``, move the keyboard there."""
        self.send({"point": path, "focus": focus})
