"""An objective on the user's own sentence: hidden, replaced and predicted tokens, in colour and in words."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any

import ipywidgets

from workbench.base.errors import DataError
from workbench.choices.data.data import Data
from workbench.choices.data.pieces import Pieces
from workbench.choices.data.prepare import tokenizer_at_hand
from workbench.choices.data.tokens import Vocabulary
from workbench.choices.objectives.objective import Objective
from workbench.choices.objectives.preview import Shown
from workbench.jupyter.light_widgets import Light, light
from workbench.recipes.recipe import Recipe
from workbench.seen.page import STYLE, legend_html, tokens_html

SENTENCE = "The old lighthouse keeper lit the lamp before the storm came. Ships at sea turned toward the harbour."
LONGEST = 600
"""Characters that are looked at."""
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_OTHERS = ("the", "of", "and", "to", "in", "a", "is", "that", "it", "was", "for", "on", "are", "with", "as", "his")


class ObjectivePreview(Light, ipywidgets.VBox):
    """A sentence to type, and what the objective makes of it; "another draw" shows other random choices.

    Attributes:
        sentence: what the user typed.
        picture: the tokens with their marks, HTML.
    """

    def __init__(self) -> None:
        self._recipe: Recipe | None = None
        self._draw, self._open = 0, False
        self._drawn: tuple[object, ...] = ()
        self.sentence = light(
            ipywidgets.Text,
            value=SENTENCE,
            description="try it on",
            tooltip="a sentence of your own, to see what the objective does to it",
        )
        self.again = light(ipywidgets.Button, description="another draw", tooltip="other random choices")
        self.picture = light(ipywidgets.HTML)
        self.sentence.observe(lambda _change: self._refresh(), names="value")
        self.again.on_click(lambda _button: self._redraw())
        super().__init__([self.sentence, self.again, self.picture])
        self.add_class("lab-preview")

    def of(self, axis: str) -> ObjectivePreview | None:
        """Return this for the objective; other axes have no preview."""
        return self if axis == Objective.axis else None

    def show(self, recipe: Recipe | None) -> None:
        """Show what a recipe's objective does; nothing new while the knobs make none."""
        self._recipe = recipe or self._recipe
        self._refresh()

    def open_up(self, opened: bool) -> None:
        """Take note of whether anybody sees it: before, no tokens are made."""
        self._open = opened
        self._refresh()

    def _redraw(self) -> None:
        self._draw += 1
        self._refresh()

    def _refresh(self) -> None:
        if not self._open or self._recipe is None:
            return
        recipe, sentence = self._recipe, self.sentence.value[:LONGEST]
        drawn = (recipe.objective, recipe.data, sentence, self._draw)
        # Most knobs that are turned are others.
        if drawn != self._drawn:
            self._drawn = drawn
            self.picture.value = preview_html(recipe, sentence, self._draw)


def preview_html(recipe: Recipe, sentence: str, draw: int = 0) -> str:
    """Return the sentence as rows of training show it, with a legend of their marks; everything typed is escaped."""
    tokens, vocabulary, note = encoded(recipe.data, sentence)
    assert vocabulary.pieces is not None
    if len(tokens) < 3:
        return "<p>Type a sentence to see what the objective does to it.</p>"
    objective: Objective = recipe.objective
    found = objective.previews(tokens, vocabulary, draw)
    rows = [_row(each.places, vocabulary.pieces) for each in found]
    shown = "".join(
        f"<p>{html.escape(each.words)}</p><p>{tokens_html(row, 0, len(tokens))}</p>"
        for each, row in zip(found, rows, strict=True)
    )
    return f"<style>{STYLE}</style><div class='wb-rows'>{shown}<p class='wb-quiet'>{legend_html(rows)}{note}</p></div>"


def _row(places: Sequence[Shown], pieces: Pieces) -> dict[str, Any]:
    """Return places as :func:`tokens_html` takes them."""
    return {
        "texts": [pieces.text(place.token) for place in places],
        "targets": ["" if place.target is None else pieces.text(place.target) for place in places],
        "marks": [place.mark for place in places],
        "joined": [pieces.continues(place.token) for place in places],
        "seen": [place.token for place in places],
        "positions": range(len(places)),
    }


def encoded(data: Data, sentence: str) -> tuple[list[int], Vocabulary, str]:
    """Return a sentence's ids with their frame, their vocabulary, and a note on where that is from.

    The tokenizer is that of the data where they were prepared already; else words, longer ones in pieces.
    """
    try:
        found = _at_hand(data.model_dump_json(), data)
    except (DataError, OSError):
        found = None
    if found is None:
        return *_words(sentence), " Words stand for tokens here, until the text of this recipe has been prepared once."
    from tokenizers import Tokenizer

    file, vocabulary = found
    tokenizer = Tokenizer.from_file(file)
    tokenizer.encode_special_tokens = True
    ids = tokenizer.encode(sentence, add_special_tokens=False).ids
    return [vocabulary.cls, *ids, vocabulary.sep], vocabulary, ""


_found: dict[str, tuple[str, Vocabulary]] = {}


def _at_hand(key: str, data: Data) -> tuple[str, Vocabulary] | None:
    # What is not prepared is asked for again: a run may prepare it meanwhile.
    if key not in _found and (found := tokenizer_at_hand(data)) is not None:
        _found[key] = found
    return _found.get(key)


def _words(sentence: str) -> tuple[list[int], Vocabulary]:
    pieces = [
        piece if not place else f"##{piece}"
        for word in re.findall(r"\w+|[^\w\s]", sentence)
        for place, piece in enumerate(re.findall(r".{1,5}", word))
    ]
    names = (*_SPECIAL, *dict.fromkeys([*_OTHERS, *pieces]))
    number = {name: token for token, name in enumerate(names)}
    vocabulary = Vocabulary(len(names), len(names), 2, 3, 4, 0, 1, pieces=Pieces(names, "##"))
    return [2, *(number[piece] for piece in pieces), 3], vocabulary
