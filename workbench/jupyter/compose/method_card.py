"""The card of a choice: what it does, its maths, when not to use it, our evidence; its docstring where it has none."""

from __future__ import annotations

import base64
import html
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import ipywidgets
from markdown_it import MarkdownIt
from markdown_it.token import Token

from workbench.choices.choice import Choice
from workbench.jupyter.compose.side_panel import SidePanel
from workbench.jupyter.light_widgets import Light


class MethodCard(Light, ipywidgets.HTMLMath):
    """Shows ``<kind>.md`` from beside the choice's file, formulas set by the notebook's own MathJax."""

    def __init__(self) -> None:
        super().__init__()
        self.add_class("lab-card")

    def show(self, choice: type[Choice]) -> None:
        """Show the card of ``choice``."""
        self.value = card_html(choice)


class CardPanel(SidePanel):
    """A card beside the form.

    Args:
        closed: called when the user asks to close it.
    """

    def __init__(self, closed: Callable[[], None]) -> None:
        # Made at the first card: it brings the page's formula typesetter along, and many never ask for one.
        self.card: MethodCard | None = None
        super().__init__(closed)

    def show(self, axis: str, choice: type[Choice]) -> None:
        """Show the card of ``choice``, headed by the axis that it is chosen for."""
        if self.card is None:
            self.card = MethodCard()
            self.children = (self._head, self.card)
        self.head(f"{axis}: {choice.model_fields['kind'].default}")
        self.card.show(choice)


def card_html(choice: type[Choice]) -> str:
    """Return the card as HTML, its pictures inside; raw HTML in it is escaped,
    since other packages may bring their own.
    """
    if not (card := choice.card_path()).is_file():
        return f"<pre>{html.escape(choice.card())}</pre>"
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(choice.card())
    for before, inline in pairwise(tokens):
        inline.children = [_with_picture(token, card.parent) for token in inline.children or []]
        if any(token.type == "image" for token in inline.children):
            before.attrSet("class", "lab-picture")
    return str(markdown.renderer.render(tokens, markdown.options, {}))


def _with_picture(token: Token, folder: Path) -> Token:
    """Return an image of the card's own folder as data, since the page cannot reach that folder;
    any other as its words.
    """
    if token.type != "image":
        return token
    name = unquote(str(token.attrs["src"]))
    # A name, no path: the card of some package must not show whatever lies on this machine.
    path = folder / Path(name).name
    if Path(name).name == name and path.suffix == ".png" and path.is_file():
        token.attrs["src"] = f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"
        return token
    return Token("text", "", 0, content=token.content)
