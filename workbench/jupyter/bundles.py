"""The scripts and styles that ``frontend/build.mjs`` made of the page's sources, as text."""

from __future__ import annotations

from pathlib import Path

import anywidget
import traitlets

STATIC = Path(__file__).parent / "static"


def script(name: str) -> str:
    """A JavaScript module. As text: given a path, anywidget keeps every widget ever made alive."""
    return (STATIC / f"{name}.js").read_text(encoding="utf-8")


def code(name: str) -> traitlets.Unicode[str, str | bytes]:
    """Return the trait with the JavaScript module of a :class:`BundledWidget`."""
    return traitlets.Unicode(script(name)).tag(sync=True)


def style(name: str) -> str:
    """Return the style sheet of a widget."""
    return (STATIC / f"{name}.css").read_text(encoding="utf-8")


class BundledWidget(anywidget.AnyWidget):
    """A widget whose code a page loads once, however many of its kind it shows (``frontend/src/loader.js``)."""

    _esm = script("loader")
    _code = traitlets.Unicode().tag(sync=True)
