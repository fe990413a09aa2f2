"""Previews: a sentence as a model would see it in training, token by token, with what is asked of it there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from workbench.choices.data.tokens import Batch
from workbench.choices.progress import Budget, Progress

START = Progress(0, 0, 0.0, Budget())
"""Start of a run, where previews stand."""


class Mark(NamedTuple):
    """Meaning of a mark.

    Attributes:
        words: for a legend. colour: of its ink, readable on white and on near-black.
        sign: that says the same without colours.
    """

    words: str
    colour: str
    sign: str


MARKS = {
    "read": Mark("read as it is, nothing is asked there", "#808080", ""),
    "masked": Mark("hidden, to be predicted", "#0072B2", "?"),
    "replaced": Mark("replaced by another token, the true one is to be predicted", "#D55E00", "\u2260"),
    "kept": Mark("stands as it is, and is to be predicted all the same", "#009E73", "="),
    "next": Mark("read; the token behind it is to be predicted", "#7848F8", "\u2192"),
    "permuted": Mark("read as it is, but moved before what is predicted; its place is told", "#8A6D00", "\u2190"),
    "predicted": Mark("predicted in an order that is drawn, then read by those that follow", "#D33682", "\u22ef"),
    "swapped": Mark("stands in another order, or is of another text, which is to be noticed", "#CC79A7", "\u21c4"),
}
"""Marks by name; an objective that does something else to a token adds a line."""


class Shown(NamedTuple):
    """One place of a row.

    Attributes:
        token: id that the model sees there.
        mark: name in :data:`MARKS`.
        target: id that is to be predicted there, or, where the mark is ``next``, behind it; None where nothing is.
    """

    token: int
    mark: str
    target: int | None = None


class Preview(NamedTuple):
    """One kind of row (T,) that training makes of a document.

    Attributes:
        words: about it, empty where there is nothing to say. places: of the row.
    """

    words: str
    places: list[Shown]


def row_of(tokens: Sequence[int], sample: int = 0) -> Batch:
    """Return a batch of one row (1, T) that holds one document.

    Args:
        tokens: ids of the document with its frame. sample: index of the row; another one gives other masks.
    """
    tokens_1T = torch.tensor([list(tokens)], dtype=torch.int64)
    positions_1T = torch.arange(len(tokens))[None]
    return Batch(tokens_1T, positions_1T, torch.zeros_like(tokens_1T, dtype=torch.int32), torch.tensor([sample]))


def shown(batch: Batch, seen_BT: torch.Tensor, labelled_BT: torch.Tensor, mask: int) -> list[list[Shown]]:
    """Return the places of rows with their marks: labelled ones are masked, replaced or kept.

    Args:
        batch: rows of true ids. seen_BT: ids that the model sees. labelled_BT: bool, places that are to be predicted.
        mask: id of [MASK].

    Example:
        >>> seen, labelled = torch.tensor([[7, 3, 5]]), torch.tensor([[False, True, True]])
        >>> [place.mark for place in shown(row_of([7, 8, 9]), seen, labelled, mask=3)[0]]
        ['read', 'masked', 'replaced']
    """

    def place(true: int, token: int, labelled: bool) -> Shown:
        if not labelled:
            return Shown(token, "read")
        return Shown(token, "masked" if token == mask else "kept" if token == true else "replaced", true)

    rows = zip(batch.tokens_BT.tolist(), seen_BT.tolist(), labelled_BT.tolist(), strict=True)
    return [list(map(place, *row)) for row in rows]


def shown_next(batch: Batch, follows_BT: torch.Tensor) -> list[list[Shown]]:
    """Return the places of rows that are read from the left: each asks for the token behind it, where one follows.

    Args:
        follows_BT: whether the next place belongs to the same piece.
    """

    def place(token: int, behind: int, follows: bool) -> Shown:
        return Shown(token, "next", behind) if follows else Shown(token, "read")

    rows = zip(batch.tokens_BT.tolist(), batch.tokens_BT.roll(-1, 1).tolist(), follows_BT.bool().tolist(), strict=True)
    return [list(map(place, *row)) for row in rows]
