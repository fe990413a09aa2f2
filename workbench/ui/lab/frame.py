"""The frame around the Lab's regions: their names for screen readers, links to them, and borders that can be moved."""

from __future__ import annotations

import anywidget
import traitlets

from workbench.ui.bundles import script, style


class Frame(anywidget.AnyWidget):
    """A child of the Lab; shows links to its regions to whoever comes by keyboard, or where they are stacked.

    It brings the Lab's layout: side by side where there is room, one under the other where there is not; and where
    JupyterLab has our extension, a button that opens the Lab in a tab.

    Args:
        lab: id of the Lab's model.
    """

    _esm = script("frame")
    _css = style("frame")

    lab = traitlets.Unicode().tag(sync=True)

    def __init__(self, lab: str = "") -> None:
        super().__init__(lab=lab)
