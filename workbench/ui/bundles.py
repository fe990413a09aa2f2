"""What ``frontend/build.mjs`` made of the page's sources, as text."""

from __future__ import annotations

from pathlib import Path

STATIC = Path(__file__).parent / "static"


def script(name: str) -> str:
    """The JavaScript module of a widget. As text: given a path, anywidget keeps every widget ever made alive."""
    return (STATIC / f"{name}.js").read_text(encoding="utf-8")


def style(name: str) -> str:
    """The style sheet of a widget."""
    return (STATIC / f"{name}.css").read_text(encoding="utf-8")
