"""Stores and the obvious loop over the rows of an epoch, for the tests of every order."""

from __future__ import annotations

import numpy as np

from workbench.choices.data.tokens import PreparedData, TokenStore, Vocabulary

VOCABULARY = Vocabulary(size=64, used=60, cls=1, sep=2, mask=3, pad=0, unk=4)


def prepared_of(documents: list[list[int]]) -> PreparedData:
    """Documents of ids, each framed, as training text; no held-out text."""
    framed = [[1, *document, 2] for document in documents]
    ids = np.array([token for document in framed for token in document], np.uint16)
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in framed])]).astype(np.int64)
    nothing = TokenStore(ids[:0], np.zeros(1, np.int64))
    return PreparedData(TokenStore(ids, offsets), nothing, VOCABULARY, "", np.bincount(ids, minlength=64))


def rows_of(documents: list[list[int]], order: list[int], length: int) -> list[list[int]]:
    """The full rows of framed documents, back to back in this order."""
    stream = [token for number in order for token in [1, *documents[number], 2]]
    return [stream[begin : begin + length] for begin in range(0, len(stream) - length + 1, length)]
