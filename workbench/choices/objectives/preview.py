"""Previews: a sentence as a model would see it in training, token by token, with what is asked of it there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import torch

from workbench.choices.data.tokens import Batch
from workbench.choices.progress import Budget, Progress

START = Progress(0, 0, 0.0, Budget())
"""Where previews stand: at the start of a run."""


class Mark(NamedTuple):
    """Meaning of a mark: ``words`` for a legend, ``colour`` of its ink, readable on white and on near-black."""

    words: str
    colour: str


MARKS = {
    "read": Mark("read as it is, nothing is asked there", "#808080"),
    "masked": Mark("hidden, to be predicted", "#0072B2"),
    "replaced": Mark("replaced by another token, the true one is to be predicted", "#D55E00"),
    "kept": Mark("stands as it is, and is to be predicted all the same", "#009E73"),
    "next": Mark("read; the token behind it is to be predicted", "#7848F8"),
    "swapped": Mark("stands in another order, or is of another text, which is to be noticed", "#CC79A7"),
}
"""Marks by name; an objective that does something else to a token adds a line."""


class Shown(NamedTuple):
    """One place of a row: the id that the model sees there, and the name of its mark in :data:`MARKS`."""

    token: int
    mark: str


def row_of(tokens: Sequence[int], sample: int = 0) -> Batch:
    """Return a batch of one row (1, T) that holds one document.

    Args:
        tokens: ids of the document with its frame. sample: index of the row; another one gives other masks.
    """
    tokens_1T = torch.tensor([list(tokens)], dtype=torch.int64)
    positions_1T = torch.arange(len(tokens))[None]
    return Batch(tokens_1T, positions_1T, torch.zeros_like(tokens_1T, dtype=torch.int32), torch.tensor([sample]))


def shown(tokens: Sequence[int], seen: Sequence[int], labelled: Collection[int], mask: int) -> list[Shown]:
    """Return the places of one row with their marks: labelled ones are masked, replaced or kept.

    Args:
        tokens, seen: true ids (T,), and those that the model sees. labelled: places. mask: id of [MASK].

    Example:
        >>> [place.mark for place in shown([7, 8, 9], [7, 3, 5], {1, 2}, mask=3)]
        ['read', 'masked', 'replaced']
    """

    def mark(place: int, token: int) -> str:
        if place not in labelled:
            return "read"
        return "masked" if token == mask else "kept" if token == tokens[place] else "replaced"

    return [Shown(token, mark(place, token)) for place, token in enumerate(seen)]
