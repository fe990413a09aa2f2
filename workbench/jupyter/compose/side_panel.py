"""A panel beside a form: a heading with a button that closes it, and something to read."""

from __future__ import annotations

import html
from collections.abc import Callable

import ipywidgets

from workbench.jupyter.light_widgets import Light, light


class SidePanel(Light, ipywidgets.VBox):
    """The page moves the focus in when it opens, and back when it is closed; Escape closes it.

    Args:
        closed: called when the user asks to close it.
        heading: text of its heading.
        content: what it shows, which scrolls by itself.
    """

    def __init__(self, closed: Callable[[], None], heading: str = "", *content: ipywidgets.Widget) -> None:
        self.closed = closed
        self.title = light(ipywidgets.HTML)
        self.title.add_class("lab-card-title")
        self.head(heading)
        close = light(ipywidgets.Button, icon="times", tooltip="close (Escape)")
        close.add_class("lab-close")
        close.on_click(lambda _button: self.closed())
        self._head = light(ipywidgets.HBox, [self.title, close])
        self._head.add_class("lab-card-head")
        super().__init__([self._head, *content])
        self.add_class("lab-card-panel")

    def head(self, text: str) -> None:
        """Another heading."""
        self.title.value = f"<h3>{html.escape(text)}</h3>"

    def close(self) -> None:
        """Leave the page, with the heading; what it showed is the caller's."""
        # ipywidgets closes widgets when they are collected, also one whose construction failed.
        if hasattr(self, "_head"):
            for part in (*self._head.children, self._head):
                part.close()
        super().close()
