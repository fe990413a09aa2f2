"""Notes beside a knob, only while there is something to say: why it is wrong or doubted, and the way back."""

from __future__ import annotations

import html
from collections.abc import Callable

import ipywidgets

from workbench.choices.choice import Problem
from workbench.jupyter.light_widgets import light


class Doubt(Problem):
    """A warning about a knob that breaks no rule: the recipe can run, and is not advised."""


class Note:
    """A line under a control, an error or a doubt; the widget exists only while there is something to say."""

    def __init__(self, row: ipywidgets.Box) -> None:
        self._row = row
        # Every widget is a model in the kernel and a view in the page, and nearly all knobs are right nearly always.
        self._line: ipywidgets.HTML | None = None

    def say(self, message: str, doubt: bool = False) -> None:
        """Show ``message`` under the row, or take the line away when it is empty; ``doubt``: it is no error."""
        (self._row.add_class if message and not doubt else self._row.remove_class)("lab-bad")
        if message:
            line = self._line or light(ipywidgets.HTML)
            shown, other = ("lab-doubt", "lab-error") if doubt else ("lab-error", "lab-doubt")
            line.remove_class(other)
            line.add_class(shown)
            line.value = html.escape(message)
            if self._line is None:
                self._line, self._row.children = line, (*self._row.children, line)
        elif self._line is not None:
            gone, self._line = self._line, None
            self._row.children = tuple(child for child in self._row.children if child is not gone)
            gone.close()


class Reset:
    """The mark of a changed knob and a button that takes it back; the widget exists only while it is changed.

    Args:
        row: where it appears.
        place: index among the row's children; None for the end.
    """

    def __init__(self, row: ipywidgets.Box, restore: Callable[[], None], place: int | None = None) -> None:
        self._row, self._restore, self._place = row, restore, place
        self._button: ipywidgets.Button | None = None

    def move(self, row: ipywidgets.Box) -> None:
        """Appear in ``row`` from now on, at its end; called before anything was changed."""
        self._row, self._place = row, None

    def offer(self, tooltip: str) -> None:
        """Show the button, saying where it leads to, or take it away when ``tooltip`` is empty."""
        if tooltip and self._button is None:
            self._button = light(ipywidgets.Button, icon="undo")
            self._button.add_class("lab-reset")
            self._button.on_click(lambda _button: self._restore())
            children = list(self._row.children)
            children.insert(len(children) if self._place is None else self._place, self._button)
            self._row.children = tuple(children)
            self._row.add_class("lab-changed")
        if tooltip and self._button is not None:
            self._button.tooltip = tooltip
        elif self._button is not None:
            gone, self._button = self._button, None
            self._row.remove_class("lab-changed")
            self._row.children = tuple(child for child in self._row.children if child is not gone)
            gone.close()
