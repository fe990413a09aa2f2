"""The card of a choice: what it does, its maths, when not to use it, our evidence; its docstring where it has none."""

from __future__ import annotations

import html
import inspect
from pathlib import Path

import ipywidgets
from markdown_it import MarkdownIt

from workbench.choices.choice import Choice


class MethodCard(ipywidgets.HTMLMath):
    """Shows ``<kind>.md`` from beside the choice's file, formulas set by the notebook's own MathJax."""

    def __init__(self) -> None:
        super().__init__()
        self.add_class("lab-card")

    def show(self, choice: type[Choice]) -> None:
        """Show the card of ``choice``."""
        self.value = card_html(choice)


def card_html(choice: type[Choice]) -> str:
    """The card as HTML; raw HTML in it is escaped, since other packages may bring cards of their own."""
    # Found by its place beside the code, so that choices of other packages bring theirs without registering it.
    card = Path(inspect.getfile(choice)).with_suffix(".md")
    if card.is_file():
        return MarkdownIt("commonmark", {"html": False}).enable("table").render(card.read_text(encoding="utf-8"))
    return f"<pre>{html.escape(inspect.cleandoc(choice.__doc__ or choice.__name__))}</pre>"
