"""Every way to cut words into pieces, at once: sums over all of them, and the likeliest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

# Shape legend: W words, C characters of all words, N = C + W nodes (before, between and behind characters), E edges
# (pieces where they occur), P pieces.

_BASE, _MIX = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x9E3779B97F4A7C15)


class Substrings:
    """The substrings of words by their length, each known by a hash.

    Args:
        words: not empty, each.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.text = "".join(words)
        self.lengths_W = np.array([len(word) for word in words])
        self.word_C = np.repeat(np.arange(len(words)), self.lengths_W)
        self.ends_W = np.cumsum(self.lengths_W)

    def hashes(self, longest: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Yield each length, where its substrings begin, int64 (S,), and their hashes, uint64 (S,)."""
        code_C = np.frombuffer(self.text.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint64) * _MIX
        rest_C = self.ends_W[self.word_C] - np.arange(len(code_C))
        begin_S, hash_S = np.arange(len(code_C)), np.zeros(len(code_C), np.uint64)
        for length in range(1, longest + 1):
            fits_S = rest_C[begin_S] >= length
            begin_S, hash_S = begin_S[fits_S], hash_S[fits_S]
            hash_S = (hash_S ^ (hash_S >> np.uint64(31))) * _BASE + code_C[begin_S + (length - 1)]
            yield length, begin_S, hash_S


@dataclass(frozen=True)
class Lattice:
    """The pieces that occur in words, sorted by where they end: by the place within the word, then by the node.

    Attributes:
        first_W, last_W: nodes before and behind each word.
        begin_E, end_E, piece_E: nodes before and behind each edge, and its piece.
        levels: bounds of the edges that end at the 1st, 2nd, ... place of their word.
    """

    first_W: np.ndarray
    last_W: np.ndarray
    begin_E: np.ndarray
    end_E: np.ndarray
    piece_E: np.ndarray
    levels: np.ndarray

    @classmethod
    def of(cls, words: Sequence[str], hashes: Sequence[np.ndarray], *, whole: bool = True) -> Lattice:
        """Return the lattice of some words, not empty, each.

        Args:
            hashes: sorted hashes of the pieces of 1, 2, ... characters; pieces are numbered in this order.
            whole: whether a piece may be a whole word of several characters.
        """
        found = Substrings(words)
        begins, ends, pieces, offset = [], [], [], 0
        for length, begin_S, hash_S in found.hashes(len(hashes)):
            known = hashes[length - 1]
            place_S = np.minimum(np.searchsorted(known, hash_S), max(0, len(known) - 1))
            is_piece_S = known[place_S] == hash_S if len(known) else np.zeros(len(hash_S), bool)
            if not whole and length > 1:
                is_piece_S &= found.lengths_W[found.word_C[begin_S]] > length
            node_S = (begin_S + found.word_C[begin_S])[is_piece_S]
            begins.append(node_S)
            ends.append(node_S + length)
            pieces.append(place_S[is_piece_S] + offset)
            offset += len(known)
        begin_E, end_E, piece_E = (np.concatenate(each).astype(np.int32) for each in (begins, ends, pieces))
        first_W = found.ends_W - found.lengths_W + np.arange(len(words))
        place_N = np.arange(len(found.word_C) + len(words)) - np.repeat(first_W, found.lengths_W + 1)
        order_E = np.lexsort((begin_E, end_E, place_N[end_E]))
        levels = np.cumsum(np.bincount(place_N[end_E]))
        begin_E, end_E, piece_E = begin_E[order_E], end_E[order_E], piece_E[order_E]
        return cls(first_W, first_W + found.lengths_W, begin_E, end_E, piece_E, levels)

    def keep(self, kept_P: np.ndarray) -> Lattice:
        """Return the lattice without the edges of some pieces, bool (P,); the others keep their numbers."""
        kept_E = kept_P[self.piece_E]
        before = np.concatenate([[0], np.cumsum(kept_E)])
        edges = {name: getattr(self, name)[kept_E] for name in ("begin_E", "end_E", "piece_E")}
        return replace(self, **edges, levels=before[self.levels])

    def expected(self, p_P: np.ndarray, counts_W: np.ndarray) -> np.ndarray:
        """Return how often each piece is used, on average over all ways to cut ``counts_W`` words, float64 (P,)."""
        alpha_N, beta_N = np.zeros((2, self.last_W[-1] + 1))
        alpha_N[self.first_W] = 1
        for begin_L, end_L, piece_L, starts in self._levels():
            alpha_N[end_L[starts]] = np.add.reduceat(alpha_N[begin_L] * p_P[piece_L], starts)
        beta_N[self.last_W] = counts_W / alpha_N[self.last_W]
        used_P = np.zeros(len(p_P))
        for begin_L, end_L, piece_L, _ in reversed(list(self._levels())):
            share_L = p_P[piece_L] * beta_N[end_L]
            # No two edges with one end have one beginning: plain addition counts each.
            beta_N[begin_L] += share_L
            used_P += np.bincount(piece_L, share_L * alpha_N[begin_L], len(p_P))
        return used_P

    def likeliest(self, p_P: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the likeliest way to cut each word, from behind: words (A,) that go on, and their pieces (A,)."""
        best_N = np.full(self.last_W[-1] + 1, -np.inf)
        best_N[self.first_W] = 0
        edge_N = np.zeros(len(best_N), np.int64)
        log_P = np.log(np.maximum(p_P, np.finfo(float).tiny))
        first = 0
        for begin_L, end_L, piece_L, starts in self._levels():
            value_L = best_N[begin_L] + log_P[piece_L]
            best_N[end_L[starts]] = np.maximum.reduceat(value_L, starts)
            best_L = np.flatnonzero(value_L == best_N[end_L])
            # Of several, the one that begins last: the first written from behind stays.
            edge_N[end_L[best_L]] = first + best_L
            first += len(begin_L)
        word_A, node_A = np.arange(len(self.first_W)), self.last_W
        while len(word_A):
            edge_A = edge_N[node_A]
            yield word_A, self.piece_E[edge_A]
            node_A = self.begin_E[edge_A]
            goes_on_A = node_A > self.first_W[word_A]
            word_A, node_A = word_A[goes_on_A], node_A[goes_on_A]

    def _levels(self) -> Iterator[tuple[np.ndarray, ...]]:
        """Yield the edges (L,) of each level, and where those of each node begin among them."""
        for low, high in zip(self.levels[:-1], self.levels[1:], strict=True):
            if high > low:
                end_L = self.end_E[low:high]
                starts = np.flatnonzero(np.concatenate([[True], end_L[1:] != end_L[:-1]]))
                yield self.begin_E[low:high], end_L, self.piece_E[low:high], starts
