"""The tokens of each row: a pure function of (seed, sample index), for any number of ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from workbench.base.errors import DataError
from workbench.choices.data.tokens import Batch, TokenStore

# Shape legend: B rows of a batch, T positions of a row, N tokens, D documents, R rows of an epoch, P pieces of
# documents in the rows of a batch.

RELEASED_ROWS = 2048
"""Rows read between two releases of the mapped file: each maps up to 64 KiB, so at most 128 MiB stay resident."""
KEPT_EPOCHS = 2
"""Plans kept in memory: a batch that straddles two epochs must not compute either of them twice."""


class EpochPlan(NamedTuple):
    """One epoch: the documents in some order, back to back, cut into rows that are read in an order of their own.

    Attributes:
        starts_D: shape (D,), where each document begins in the store, in this epoch's order.
        bounds_D1: shape (D + 1,), where it begins in this epoch's stream; one more entry than documents.
        rows_R: shape (R,), which row of the stream stands at each place of the epoch.
    """

    starts_D: np.ndarray
    bounds_D1: np.ndarray
    rows_R: np.ndarray

    @classmethod
    def of(cls, store: TokenStore, order_D: np.ndarray, rows_R: np.ndarray) -> EpochPlan:
        """Return the plan that lays the documents of ``store`` back to back in this order.

        Args:
            order_D: numbers of documents, each once.
            rows_R: see :attr:`rows_R`.
        """
        bounds_D1 = np.zeros(len(store.offsets_D1), np.int64)
        np.cumsum(np.diff(store.offsets_D1)[order_D], out=bounds_D1[1:])
        # Half the bytes: of 10 GB of tokens in rows of 512 this array alone takes 75 MiB otherwise.
        narrow = np.int32 if len(rows_R) < 1 << 31 else np.int64
        return cls(store.offsets_D1[:-1][order_D], bounds_D1, rows_R.astype(narrow))


Arrange = Callable[[TokenStore, int, int, int], EpochPlan]
"""Plans an epoch of a store: a pure function of (store, tokens per row, seed, epoch), epochs counted from 0."""


def raw_words(seed: int, epoch: int, stream: int, count: int) -> np.ndarray:
    """Return ``count`` random words of 64 bits, uint64 (count,), that depend on the four arguments alone.

    Raw Philox words: numpy promises that stream for ever, but may change what a generator makes of it, and a resumed
    run must see the same rows under a newer numpy.

    Args:
        seed: of the recipe, at least 0.
        epoch: counted from 0.
        stream: separates independent draws of one epoch.
    """
    generator = np.random.Philox(key=np.array([seed, epoch], np.uint64), counter=np.array([0, 0, 0, stream], np.uint64))
    words: np.ndarray = generator.random_raw(count)
    return words


def shuffled(seed: int, epoch: int, stream: int, count: int) -> np.ndarray:
    """Return a permutation of ``count`` numbers, int64 (count,); arguments as for :func:`raw_words`."""
    return np.argsort(raw_words(seed, epoch, stream, count), kind="stable")


def shuffle(store: TokenStore, sequence_length: int, seed: int, epoch: int) -> EpochPlan:
    """Plan an epoch of permuted documents, cut into rows of so many tokens that are permuted again."""
    order_D = shuffled(seed, epoch, 0, store.documents)
    return EpochPlan.of(store, order_D, shuffled(seed, epoch, 1, store.tokens // sequence_length))


class RowOrder:
    """Full rows of a token store, in an order that one integer, the sample index, addresses.

    Every epoch puts the documents in an order, packs them back to back into rows of T tokens (the remainder that does
    not fill a row is left out) and puts the rows in an order. Nothing is remembered between calls but the last two
    epochs' plans, so the position of the data pipeline is the sample index: resuming, skipping and splitting over
    ranks (rank r of R takes ``samples[r::R]``) need no state.

    Args:
        sequence_length: T, tokens per row.
        arrange: plans each epoch.

    Raises:
        DataError: the store holds fewer tokens than one row.

    Example:
        >>> ids = np.array([1, 7, 2, 1, 8, 9, 2], np.uint16)
        >>> order = RowOrder(TokenStore(ids, np.array([0, 3, 7])), sequence_length=3, seed=0)
        >>> order.rows, order.batch(np.array([0, 1])).tokens_BT.shape
        (2, torch.Size([2, 3]))
    """

    def __init__(self, store: TokenStore, sequence_length: int, seed: int, arrange: Arrange = shuffle) -> None:
        self.store = store
        self.sequence_length = sequence_length
        self.seed = seed
        self.arrange = arrange
        # The rest that fills no row is left out: with full rows only, no step ever computes padding.
        self.rows = store.tokens // sequence_length
        if self.rows == 0:
            raise DataError(
                f"{store.tokens:,} tokens do not fill one row of sequence_length {sequence_length:,}; "
                "use more text or a shorter data.sequence_length"
            )
        # A plain array over the same mapped pages: indexing a memmap wraps every result in a memmap again.
        self._ids_N = np.asarray(store.ids_N)
        self._plans: dict[int, EpochPlan] = {}
        self._unreleased = 0

    def of_length(self, sequence_length: int) -> RowOrder:
        """Return the order of the same text and seed in rows of another length, in tokens.

        Each length shuffles its own rows of the same stream of documents. A run that changes its length within an
        epoch may therefore read a text of that epoch twice and miss another; between epochs nothing is lost.

        Raises:
            DataError: the store holds fewer tokens than one such row.
        """
        if sequence_length == self.sequence_length:
            return self
        return RowOrder(self.store, sequence_length, self.seed, self.arrange)

    def arranged(self, arrange: Callable[[RowOrder], RowOrder]) -> RowOrder:
        """Return the order of rows (B, T) that ``arrange`` makes of this one; of a mixture's parts, of each."""
        return arrange(self)

    def read(self, sample: int) -> dict[str, float]:
        """Return what telemetry says of the text read before a sample: the passes over it, here."""
        return {"data.epochs": sample / self.rows}

    def first_sample(self, tokens: int) -> int:
        """Sample index that a run goes on with after ``tokens`` tokens: ceil(tokens / T).

        The tokens say it all, however long the rows were that they came in; at one length it is the number of rows
        read so far. A sample index of one length is never handed out twice.
        """
        return -(-tokens // self.sequence_length)

    def plan(self, epoch: int) -> EpochPlan:
        """Return the orders of one epoch, documents (D,) and rows (R,); shape and meaning as in :class:`EpochPlan`."""
        if epoch not in self._plans:
            # The oldest goes: dictionaries keep the order of insertion.
            while len(self._plans) >= KEPT_EPOCHS:
                del self._plans[next(iter(self._plans))]
            self._plans[epoch] = self.arrange(self.store, self.sequence_length, self.seed, epoch)
        return self._plans[epoch]

    def batch(self, samples: np.ndarray) -> Batch:
        """Return the rows of the given global sample indices, on the CPU.

        Args:
            samples: shape (B,), integers at least 0; epoch = sample // rows.

        Returns:
            tokens and positions int64 of shape (B, T), pieces int32 of shape (B, T), samples int64 of shape (B,).
        """
        samples_B = np.ascontiguousarray(samples, dtype=np.int64)
        source_BT, positions_BT, documents_BT = self._laid_out(samples_B)
        # uint16 or uint32 -> int64: an embedding asks for int64, the store for few bytes.
        tokens_BT = self._ids_N[source_BT].astype(np.int64)
        self._unreleased += len(samples_B)
        if self._unreleased >= RELEASED_ROWS:
            self.store.release()
            self._unreleased = 0
        return Batch(*(torch.from_numpy(a) for a in (tokens_BT, positions_BT, documents_BT, samples_B)))

    def places(self, samples: np.ndarray) -> np.ndarray:
        """Return where in the store each token of some rows stands, int64 (B, T); arguments as for :meth:`batch`."""
        return self._laid_out(np.ascontiguousarray(samples, dtype=np.int64))[0]

    def epochs_of(self, samples: np.ndarray) -> np.ndarray:
        """Return the epoch of some samples, int64 (B,): of a mixture, of each one's part."""
        return samples // self.rows

    def samples_of(self, begin: int, end: int, epoch: int) -> np.ndarray:
        """Return the samples of an epoch that read some of a text, int64, rising; none where it was left out.

        Args:
            begin, end: places in the store, of one document.
            epoch: counted from 0.
        """
        plan, length = self.plan(epoch), self.sequence_length
        start = self.store.offsets_D1[np.searchsorted(self.store.offsets_D1, begin, side="right") - 1]
        reads_R = np.zeros(self.rows, bool)
        for place in np.flatnonzero(plan.starts_D == start):
            moved = int(plan.bounds_D1[place] - start)
            reads_R[(begin + moved) // length : -(-(end + moved) // length)] = True
        return epoch * self.rows + np.flatnonzero(reads_R[plan.rows_R])

    def _laid_out(self, samples_B: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return place in the store, position in the piece and number of the piece of every token, (B, T) each."""
        assert samples_B.ndim == 1, samples_B.shape
        assert samples_B.min(initial=0) >= 0, samples_B
        epochs_B = samples_B // self.rows
        shape = (len(samples_B), self.sequence_length)
        source_BT, positions_BT = np.empty(shape, np.int64), np.empty(shape, np.int64)
        documents_BT = np.empty(shape, np.int32)
        # Once, or twice where the batch straddles the end of an epoch.
        for epoch in np.unique(epochs_B):
            here_B = epochs_B == epoch
            plan = self.plan(int(epoch))
            rows_B = plan.rows_R[samples_B[here_B] % self.rows]
            source_BT[here_B], positions_BT[here_B], documents_BT[here_B] = _lay_out(plan, rows_B, self.sequence_length)
        return source_BT, positions_BT, documents_BT


def _lay_out(plan: EpochPlan, rows_B: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return source index, position in the piece and piece number of every place of some rows.

    Works on pieces and repeats, not on a search per token: that is 5-10x less work for usual documents.

    Args:
        length: T.

    Returns:
        three int64 arrays of shape (B, T).
    """
    begin_B = rows_B.astype(np.int64) * length
    # The document a place lies in is the last one that begins at or before it.
    first_B = np.searchsorted(plan.bounds_D1, begin_B, side="right") - 1
    last_B = np.searchsorted(plan.bounds_D1, begin_B + (length - 1), side="right") - 1
    pieces_B = last_B - first_B + 1
    # Number of each piece within its row: 0, 1, .. pieces - 1, row after row.
    piece_P = np.arange(pieces_B.sum()) - np.repeat(np.cumsum(pieces_B) - pieces_B, pieces_B)
    document_P = np.repeat(first_B, pieces_B) + piece_P
    row_begin_P = np.repeat(begin_B, pieces_B)
    bound_P = plan.bounds_D1[document_P]
    # A document that began in an earlier row goes on here as a piece of its own, from position 0.
    begin_P = np.maximum(bound_P, row_begin_P)
    size_P = np.minimum(plan.bounds_D1[document_P + 1], row_begin_P + length) - begin_P
    place_P = np.cumsum(size_P) - size_P
    # Flat over (B, T) so far; reshaped at the end, without a copy.
    place_BT = np.arange(len(rows_B) * length)
    shape = (len(rows_B), length)
    source_BT = place_BT + np.repeat(plan.starts_D[document_P] + begin_P - bound_P - place_P, size_P)
    position_BT = place_BT - np.repeat(place_P, size_P)
    return source_BT.reshape(shape), position_BT.reshape(shape), np.repeat(piece_P, size_P).reshape(shape)
