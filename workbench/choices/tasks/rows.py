"""Rows of encoded examples: a batch of examples, packed so that no row is filled up in vain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from workbench.choices.data.order import shuffled
from workbench.choices.data.tokens import Batch
from workbench.choices.tasks.encoding import Encoded

# Shape legend: B rows, T positions of a row, E examples of the batch.

STREAM = 7
"""Separates the order of examples from all other permutations of a seed."""
MULTIPLE = 8
"""Row lengths are rounded up to it, so that there are few of them."""


class ExampleBatch(NamedTuple):
    """Packed examples; attention stays inside each of them.

    Attributes:
        tokens_BT, positions_BT, documents_BT, samples_B: as of :class:`Batch`; what is left of a row is a document.
        begins_E: int64 flat place b * T + t of each example's first token.
        lengths_E: int64 tokens of each.
        context_E: int64 place in the example where its passage begins; 1 without one.
        targets_E: what is to be predicted, (E,) or (E, 2).
    """

    tokens_BT: Tensor
    positions_BT: Tensor
    documents_BT: Tensor
    samples_B: Tensor
    begins_E: Tensor
    lengths_E: Tensor
    context_E: Tensor
    targets_E: Tensor

    def to(self, device: torch.device | str) -> ExampleBatch:
        """Return the same batch, shapes (B, T), (B,) and (E,), on ``device``."""
        return ExampleBatch(*(tensor.to(device, non_blocking=True) for tensor in self))

    @property
    def rows(self) -> Batch:
        """Rows that a backbone reads, (B, T)."""
        return Batch(*self[:4])

    @property
    def tokens(self) -> int:
        """Tokens of examples."""
        return int(self.lengths_E.sum())


def packed(encoded: Encoded, places_E: Sequence[int] | np.ndarray, pad: int) -> ExampleBatch:
    """Return some examples as one batch: rows as long as the longest needs, each filled first-fit, longest first.

    Args:
        places_E: which examples of ``encoded``, in the order of ``begins_E``.
        pad: id at the end of rows, a document of its own.
    """
    ids = [encoded.ids[place] for place in places_E]
    longest = max(map(len, ids))
    length = -(-longest // MULTIPLE) * MULTIPLE
    free: list[int] = []
    at: dict[int, tuple[int, int]] = {}
    for index in sorted(range(len(ids)), key=lambda index: -len(ids[index])):
        row = next((row for row, left in enumerate(free) if left >= len(ids[index])), len(free))
        if row == len(free):
            free.append(length)
        at[index] = row, length - free[row]
        free[row] -= len(ids[index])
    rows = len(free)
    tokens_BT = np.full((rows, length), pad, np.int64)
    positions_BT = np.zeros((rows, length), np.int64)
    documents_BT = np.full((rows, length), len(ids), np.int32)
    for index, (row, column) in at.items():
        place = slice(column, column + len(ids[index]))
        tokens_BT[row, place], positions_BT[row, place] = ids[index], np.arange(len(ids[index]))
        documents_BT[row, place] = index
    for row, left in enumerate(free):
        positions_BT[row, length - left :] = np.arange(left)
    begins_E = np.array([at[index][0] * length + at[index][1] for index in range(len(ids))])
    arrays = (
        tokens_BT, positions_BT, documents_BT, np.arange(rows), begins_E, np.array([len(each) for each in ids]),
        encoded.context_W[places_E], encoded.targets[places_E],
    )  # fmt: skip
    return ExampleBatch(*map(torch.from_numpy, map(np.ascontiguousarray, arrays)))


def drawn(seed: int, first: int, count: int, size: int) -> np.ndarray:
    """Return which examples stand at places [first, first + count) of an endless shuffled order, int64 (count,).

    Every epoch holds each of ``size`` examples once, in an order of its own.
    """
    places = np.arange(first, first + count)
    epochs = {int(epoch): shuffled(seed, int(epoch), STREAM, size) for epoch in np.unique(places // size)}
    return np.array([epochs[int(place // size)][place % size] for place in places])
