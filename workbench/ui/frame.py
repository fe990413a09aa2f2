"""The frame around the Lab's regions: their names for screen readers, links to them, and borders that can be moved."""

from __future__ import annotations

from pathlib import Path

import anywidget


class Frame(anywidget.AnyWidget):
    """A child of the Lab; shows links to its regions to whoever comes by keyboard, or where they are stacked.

    It brings the Lab's layout: side by side where there is room, one under the other where there is not.
    """

    # As text: given a path, anywidget keeps every widget that was ever made alive, to reload it when the file changes.
    _esm = (Path(__file__).parent / "frame.js").read_text(encoding="utf-8")
    _css = (Path(__file__).parent / "frame.css").read_text(encoding="utf-8")
