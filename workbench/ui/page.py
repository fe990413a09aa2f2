"""What plain ipywidgets cannot say about themselves: the style, the keyboard, and words for screen readers."""

from __future__ import annotations

from pathlib import Path

import anywidget


class Page(anywidget.AnyWidget):
    """First child of every root of ours; invisible.

    It brings the style sheet, keeps JupyterLab's one-letter shortcuts off our controls (in a drop-down, "b" picks an
    entry; without this it would insert a cell), and keeps ``aria`` attributes in step with what is shown.
    """

    # As text: given a path, anywidget keeps every widget that was ever made alive, to reload it when the file changes.
    _esm = (Path(__file__).parent / "page.js").read_text(encoding="utf-8")
    _css = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
