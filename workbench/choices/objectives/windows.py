"""Windows of three tokens: which scored tokens of a held-out set stand in one that the training text has as well.

A table of n-grams lowers the loss of those alone; what a model has understood shows on the others.
"""

from __future__ import annotations

import numpy as np

from workbench.choices.data.tokens import TokenStore
from workbench.choices.objectives.heldout import HeldoutSet

# Shape legend: S scored tokens, W different windows of the set, N tokens of a chunk of the training text.

WIDTH = 3
CHUNK_TOKENS = 1 << 22
_SMALLEST_TABLE, _LARGEST_TABLE = 16, 24
"""Bits; of a table of 2^24 places most of a million windows have one alone, and it takes 16 MiB."""
_ODD = 0x9E3779B97F4A7C15


def seen_windows(train: TokenStore, heldout: HeldoutSet) -> np.ndarray:
    """Return whether the window around each scored token stands in a document of the training text, bool (S,).

    The window of a masked token reaches from its left to its right neighbour, that of a causal one holds the two tokens
    before it. A token at the edge of its document has no window, and counts as not seen.

    The windows of the set are kept (16 bytes each and a table of 16 MiB at most) and the training text is read once, a
    chunk at a time: memory does not grow with it.
    """
    size = heldout.vocabulary.size
    assert size < 1 << 21, "three ids fit into 63 bits"
    first_S = heldout.scored_S - (WIDTH - 1 if heldout.causal else 1)
    last_S = first_S + WIDTH - 1
    whole_S = (first_S >= 0) & (last_S < heldout.tokens)
    first_S, last_S = np.maximum(first_S, 0), np.minimum(last_S, heldout.tokens - 1)
    whole_S &= heldout.document_N[first_S] == heldout.document_N[last_S]
    first_S = np.minimum(first_S, max(0, heldout.tokens - WIDTH))
    key_S = _keys(heldout.ids_N, size)[first_S] if heldout.tokens >= WIDTH else np.zeros(len(first_S), np.int64)
    key_W = np.unique(key_S[whole_S])
    found_W = np.zeros(len(key_W), bool)
    bits = min(_LARGEST_TABLE, max(_SMALLEST_TABLE, (16 * len(key_W)).bit_length()))
    table = np.zeros(1 << bits, bool)
    table[_place(key_W, bits)] = True
    for begin in range(0, max(0, train.tokens - WIDTH + 1), CHUNK_TOKENS):
        ids_N = np.asarray(train.ids_N[begin : begin + CHUNK_TOKENS + WIDTH - 1], np.int64)
        key_N = _keys(ids_N, size)
        within_N = np.ones(len(key_N), bool)
        low, high = np.searchsorted(train.offsets_D1, [begin + 1, begin + len(ids_N)])
        starts_D = train.offsets_D1[low:high] - begin
        for back in range(1, WIDTH):
            # A document begins at the second or third token: the window spans two texts.
            places_D = starts_D - back
            within_N[places_D[(places_D >= 0) & (places_D < len(key_N))]] = False
        # Most windows are ruled out by one look into the table; the rest is looked for exactly.
        key_M = key_N[within_N & table[_place(key_N, bits)]]
        place_M = np.searchsorted(key_W, key_M)
        place_M, key_M = place_M[place_M < len(key_W)], key_M[place_M < len(key_W)]
        found_W[place_M[key_W[place_M] == key_M]] = True
    seen_S = np.zeros(len(key_S), bool)
    seen_S[whole_S] = found_W[np.searchsorted(key_W, key_S[whole_S])]
    return seen_S


def _keys(ids_N: np.ndarray, size: int) -> np.ndarray:
    """Return one number for each three neighbours, (N - 2,)."""
    return np.asarray((ids_N[:-2] * size + ids_N[1:-1]) * size + ids_N[2:])


def _place(keys: np.ndarray, bits: int) -> np.ndarray:
    return np.asarray((keys.astype(np.uint64) * np.uint64(_ODD)) >> np.uint64(64 - bits))
