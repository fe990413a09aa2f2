"""The frame around the Lab's regions: names, links, borders that move, keys, and what stays when a kernel ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import traitlets

from workbench.jupyter.bundles import BundledWidget, code, style
from workbench.jupyter.light_widgets import Light


class Frame(Light, BundledWidget):
    """A child of the Lab; shows links to its regions to whoever comes by keyboard, or where they are stacked.

    It brings the Lab's layout: side by side where there is room, one under the other where there is not; and where
    JupyterLab has our extension, a button that opens the Lab in a tab. When the kernel ends, it says so over the forms,
    and hands what was kept to the Lab that stands in the same place next.

    Args:
        receive: called with what the page asks for: ``{"do": "launch"}``, ``{"do": "example"}``,
            ``{"do": "restore", ...}`` with what was kept.
        lab: id of the Lab's model.

    Attributes:
        kept: what would be lost with the kernel.
    """

    _code = code("frame")
    _css = style("frame")

    lab = traitlets.Unicode().tag(sync=True)
    kept = traitlets.Dict().tag(sync=True)

    def __init__(self, receive: Callable[[dict[str, Any]], None] = lambda _request: None, lab: str = "") -> None:
        super().__init__(lab=lab)
        self.on_msg(lambda _widget, content, _buffers: receive(content if isinstance(content, dict) else {}))
