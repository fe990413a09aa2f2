"""Tokens that are labelled together: words, spans of words, n-grams of words.

A row is cut into groups by its tokens and the random bits of its places. Groups then come in a random order, and their
tokens are labelled until the row's slots are full. No word is labelled in part: the last group loses the words that do
not fit.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

# Shape legend: B rows, T positions of a row, S numbers of words.

Selection = Literal["token", "whole_word", "span", "ngram"]

_P, _LONGEST, _GRAMS = 0.2, 10, 3
LENGTH_SHARES: dict[str, tuple[float, ...]] = {
    # SpanBERT: geometric, cut at 10 words and made to sum to 1: a mean of 3.80.
    "span": tuple(_P * (1 - _P) ** k / (1 - (1 - _P) ** _LONGEST) for k in range(_LONGEST)),
    # ALBERT: p(n) proportional to 1/n.
    "ngram": tuple(1 / n / sum(1 / k for k in range(1, _GRAMS + 1)) for n in range(1, _GRAMS + 1)),
}
"""Shares of groups of 1, 2, ... words."""


class Groups(NamedTuple):
    """The group and the word around each place of rows, (B, T) each.

    Attributes:
        first_BT, end_BT: where the group begins, and where the next one does.
        word_end_BT: where the next word begins.
        open_BT: whether the place may be labelled.
    """

    first_BT: Tensor
    end_BT: Tensor
    word_end_BT: Tensor
    open_BT: Tensor


def lengths_of(bits: Tensor, shares: tuple[float, ...]) -> Tensor:
    """Return numbers of words, 1 to S, of the shape of ``bits``: 63 random bits each.

    Args:
        shares: of 1, 2, ... S words; their sum is 1.
    """
    # Bounds in whole numbers: the same draw on every device.
    upto, bounds = 0.0, []
    for share in shares[:-1]:
        upto += share
        bounds.append(int(upto * 2.0**63))
    return torch.bucketize(bits, bits.new_tensor(bounds), right=True) + 1


def groups_of(
    begins_BT: Tensor, closed_BT: Tensor, documents_BT: Tensor, slots: int, lengths_BT: Tensor | None
) -> Groups:
    """Cut rows into groups; none crosses a document, a special token or a word that is too long to be labelled.

    Args:
        begins_BT: whether the vocabulary says that a word begins.
        closed_BT: whether no label may stand there (special tokens).
        documents_BT: piece of a document.
        slots: longest word that can be labelled.
        lengths_BT: words in the 1st, 2nd, ... group of each row; None for one word in each.
    """
    edge_BT = closed_BT | _after(closed_BT) | (documents_BT != _before(documents_BT))
    edge_BT[:, 0] = True
    begins_BT = begins_BT | edge_BT
    first_BT, word_end_BT = _extent(begins_BT)
    # Such a word would be labelled in part, or take the place of all others for nothing.
    long_BT = word_end_BT - first_BT > slots
    closed_BT = closed_BT | long_BT
    starts_BT = begins_BT
    if lengths_BT is not None:
        word_BT = begins_BT.cumsum(1) - 1
        segment_BT = torch.searchsorted(lengths_BT.cumsum(1), word_BT, right=True)
        starts_BT = edge_BT | (segment_BT != _before(segment_BT)) | (begins_BT & (long_BT | _after(long_BT)))
    return Groups(*_extent(starts_BT), word_end_BT, ~closed_BT)


def _before(values_BT: Tensor) -> Tensor:
    """Return the values one place to the left, (B, T); the first place has its own."""
    return torch.cat([values_BT[:, :1], values_BT[:, :-1]], dim=1)


def _after(flags_BT: Tensor) -> Tensor:
    """Return the flags of the places to the left, (B, T); the first place has none."""
    return torch.cat([torch.zeros_like(flags_BT[:, :1]), flags_BT[:, :-1]], dim=1)


def _extent(begins_BT: Tensor) -> tuple[Tensor, Tensor]:
    """Return where the stretch around each place begins, and where the next one does, (B, T) each."""
    length = begins_BT.shape[1]
    place_T = torch.arange(length, device=begins_BT.device)
    first_BT = torch.where(begins_BT, place_T, 0).cummax(1).values
    return first_BT, next_place(torch.cat([begins_BT[:, 1:], torch.ones_like(begins_BT[:, :1])], dim=1)) + 1


def next_place(flags_BT: Tensor) -> Tensor:
    """Return the nearest flagged place from each place on, itself included, (B, T); T where there is none."""
    length = flags_BT.shape[1]
    place_T = torch.arange(length, device=flags_BT.device)
    return torch.where(flags_BT, place_T, length).flip(1).cummin(1).values.flip(1)
