"""Rows of several texts in shares that may move: a pure function of (seed, sample index), like the rows of one text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch

from workbench.base.errors import DataError
from workbench.choices.data.order import RowOrder
from workbench.choices.data.tokens import Batch, TokenStore

# Shape legend: B rows of a batch, T positions of a row, K parts, S blocks, J samples of a block.

BLOCK = 256
"""Samples whose weights are the same; a block holds each part's share of them to within one."""
STRIDE = 159
"""Odd and near BLOCK / golden ratio: consecutive samples, and every second or fourth, spread over all parts."""
_GOLDEN = 0.6180339887498949
_CHUNK = 1024
_NO_LIMIT = np.iinfo(np.int64).max
_STREAM = 2

Weights = Callable[[np.ndarray], np.ndarray]
"""From tokens before a block, float64 (S,), to the weights of the parts there, (S, K); they need not sum to 1."""


class Quota:
    """Samples of each part among the first n: never more than one per block away from its share.

    A block of :data:`BLOCK` samples is cut at the running sums of the weights, shifted by a fraction that walks through
    [0, 1) in golden steps; a part gets the whole numbers in its piece, so that over many blocks its share is exact to
    within the logarithm of their number. A part at its limit leaves, and the others share its place.

    The counts of blocks are summed from the first on, a thousand blocks at a time: nothing else is remembered.

    Args:
        weights: of the parts by tokens. limits: samples of each part, at most; None for any number.
        length: T, tokens per sample.

    Raises:
        DataError: the weights sum to nothing somewhere.
    """

    def __init__(self, weights: Weights, limits: Sequence[int | None], length: int, seed: int) -> None:
        self._weights, self._length, self._seed = weights, length, seed
        self._limit_K = np.array([_NO_LIMIT if limit is None else limit for limit in limits], np.int64)
        self._before_SK = np.zeros((1, len(limits)), np.int64)
        self._ended = False
        self._blocks: dict[int, np.ndarray] = {}

    def before(self, sample: int) -> np.ndarray:
        """Return how many of the first ``sample`` samples come from each part, int64 (K,).

        Raises:
            DataError: the parts are used up before.
        """
        block, place = divmod(sample, BLOCK)
        self._reach(block)
        rest_J = self.parts_of_block(block)[:place] if place else np.empty(0, np.int64)
        if len(rest_J) < place:
            raise self._used_up()
        return np.asarray(self._before_SK[block] + np.bincount(rest_J, minlength=len(self._limit_K)))

    def parts_of_block(self, block: int) -> np.ndarray:
        """Return the part of each sample of a block, int64 (J,); fewer than :data:`BLOCK` where the parts end."""
        if block not in self._blocks:
            self._reach(block + 1, ends=True)
            count_K = self._before_SK[block + 1] - self._before_SK[block] if block + 1 < len(self._before_SK) else [0]
            size = int(np.sum(count_K))
            draw = np.random.Philox(key=np.array([self._seed, block], np.uint64), counter=np.array([0, 0, 0, _STREAM]))
            place_J = (np.arange(size) * STRIDE + int(draw.random_raw() % BLOCK)) % BLOCK
            # Ranks: where the parts end within a block, places are missing.
            rank_J = place_J if size == BLOCK else place_J.argsort().argsort()
            while len(self._blocks) >= 4:
                del self._blocks[next(iter(self._blocks))]
            self._blocks[block] = np.searchsorted(np.cumsum(count_K), rank_J, side="right")
        return self._blocks[block]

    def samples_of(self, part: int, local_N: np.ndarray) -> np.ndarray:
        """Return the samples that read a part's own samples, int64, rising; those beyond 2^24 are left out."""
        most = (1 << 24) // BLOCK
        while not self._ended and len(self._before_SK) <= most and self._before_SK[-1, part] <= local_N.max(initial=-1):
            self._count()
        before_S = self._before_SK[:, part]
        found = []
        for local in local_N[local_N < before_S[-1]].tolist():
            block = int(np.searchsorted(before_S, local, side="right")) - 1
            (place_N,) = np.nonzero(self.parts_of_block(block) == part)
            found.append(block * BLOCK + int(place_N[local - int(before_S[block])]))
        return np.array(found, np.int64)

    def _reach(self, block: int, *, ends: bool = False) -> None:
        """Count up to the start of a block.

        Args:
            ends: it is all right if the parts end before.
        """
        while len(self._before_SK) <= block and not self._ended:
            self._count()
        if len(self._before_SK) <= block and not ends:
            raise self._used_up()

    def _count(self) -> None:
        """Add a chunk of blocks to the table, or as many as come before a part reaches its limit, and the one after."""
        first, before_K = len(self._before_SK) - 1, self._before_SK[-1]
        block_S = np.arange(first, first + _CHUNK)
        weight_SK = np.array(self._weights(block_S * float(BLOCK * self._length)), np.float64)
        if not (weight_SK.sum(axis=1) > 0).all():
            where = int(block_S[weight_SK.sum(axis=1) <= 0][0]) * BLOCK * self._length
            raise DataError(f"data.parts: the weights sum to nothing after {where:,} tokens; one must be above 0")
        weight_SK *= before_K < self._limit_K
        total_S = weight_SK.sum(axis=1)
        # Parts without a weight here do not fill the place of those that are used up.
        usable = len(total_S) if (total_S > 0).all() else int(np.argmax(total_S <= 0))
        shift_S = ((block_S[:usable] + 1) * _GOLDEN + self._seed * _GOLDEN**2) % 1.0
        count_SK = _counts(weight_SK[:usable] / total_S[:usable, None], shift_S)
        end_SK = before_K + np.cumsum(count_SK, axis=0)
        over_S = (end_SK > self._limit_K).any(axis=1)
        whole = int(np.argmax(over_S)) if over_S.any() else usable
        self._before_SK = np.concatenate([self._before_SK, end_SK[:whole]])
        if whole < usable:
            last_K = self._before_SK[-1]
            count_K = _limited(weight_SK[whole], self._limit_K - last_K)
            self._before_SK = np.concatenate([self._before_SK, (last_K + count_K)[None]])
            self._ended = int(count_K.sum()) < BLOCK
        elif usable < _CHUNK:
            self._ended = True

    def _used_up(self) -> DataError:
        rows = int(self._before_SK[-1].sum())
        return DataError(
            f"the parts of the mixture are used up after {rows * self._length:,} tokens ({rows:,} rows of "
            f"{self._length}); give the run a smaller budget, or a part more epochs or none as its limit"
        )


def _counts(share_SK: np.ndarray, shift_S: np.ndarray) -> np.ndarray:
    """Return samples of each part, int64 (S, K): whole blocks in all, and each within one of its share, (S, K)."""
    edge_SK = np.cumsum(share_SK, axis=1) * BLOCK
    # Rounding must not leave a sample to a part without a weight behind the last one.
    edge_SK[edge_SK > BLOCK * (1 - 1e-12)] = BLOCK
    bound_SK = np.ceil(edge_SK - shift_S[:, None]).astype(np.int64)
    return np.diff(bound_SK, axis=1, prepend=0)


def _limited(weight_K: np.ndarray, room_K: np.ndarray) -> np.ndarray:
    """Return samples of each part, int64 (K,), in the block in which one reaches its limit;
    fewer than a block at the end.
    """
    count_K, weight_K, left = np.zeros(len(room_K), np.int64), weight_K.copy(), BLOCK
    while left and weight_K.sum() > 0:
        more_K = np.diff(np.rint(np.cumsum(weight_K) / weight_K.sum() * left).astype(np.int64), prepend=0)
        full_K = (more_K > room_K) & (weight_K > 0)
        # What they lack goes to the others, by their weights.
        count_K += np.where(full_K, room_K, 0) if full_K.any() else more_K
        left -= int(np.where(full_K, room_K, 0).sum()) if full_K.any() else left
        weight_K[full_K] = 0
    return count_K


class MixtureOrder(RowOrder):
    """Rows of several texts by sample index; each part's own rows come in the order of that part.

    A sample's part follows from :class:`Quota`, its row in the part from the number of the part's samples before it,
    its masks from its own index. Every reader of the same samples gets the same rows, and none keeps a state.

    Args:
        store: all parts back to back.
        parts: by name, of one row length.
        weights: see :data:`Weights`.
        epochs: passes over each part, at most; None for any number.

    Attributes:
        parts: as given.
    """

    def __init__(
        self, store: TokenStore, parts: Mapping[str, RowOrder], weights: Weights, epochs: Sequence[float | None],
        seed: int,
    ) -> None:  # fmt: skip
        self.store, self.parts, self.seed = store, dict(parts), seed
        self.sequence_length = next(iter(self.parts.values())).sequence_length
        self.rows = sum(part.rows for part in self.parts.values())
        tokens = [part.store.tokens for part in self.parts.values()]
        self._begins = np.cumsum(tokens) - tokens
        self._given = weights, epochs
        limits = [None if most is None else int(most * part.rows)
                  for most, part in zip(epochs, self.parts.values(), strict=True)]  # fmt: skip
        self._quota = Quota(weights, limits, self.sequence_length, seed)

    def of_length(self, sequence_length: int) -> RowOrder:
        """See :meth:`RowOrder.of_length`; weights follow the tokens, however long the rows (T,) are."""
        if sequence_length == self.sequence_length:
            return self
        return self.arranged(lambda part: part.of_length(sequence_length))

    def arranged(self, arrange: Callable[[RowOrder], RowOrder]) -> RowOrder:
        """See :meth:`RowOrder.arranged`: every part's rows (B, T), each within its own text."""
        return MixtureOrder(self.store, {name: arrange(part) for name, part in self.parts.items()},
                            *self._given, self.seed)  # fmt: skip

    def locate(self, samples_B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of the part of each sample, and its sample index within the part, both int64 (B,).

        Raises:
            DataError: the parts are used up before.
        """
        part_B, local_B = np.empty(len(samples_B), np.int64), np.empty(len(samples_B), np.int64)
        block_B, place_B = np.divmod(samples_B, BLOCK)
        for block in np.unique(block_B):
            here_B = np.flatnonzero(block_B == block)
            before_K = self._quota.before(int(block) * BLOCK)
            part_J = self._quota.parts_of_block(int(block))
            if place_B[here_B].max() >= len(part_J):
                self._quota.before(int(samples_B[here_B].max()) + 1)
            is_part_KJ = part_J == np.arange(len(self.parts))[:, None]
            earlier_KJ = np.cumsum(is_part_KJ, axis=1) - is_part_KJ
            part_B[here_B] = found = part_J[place_B[here_B]]
            local_B[here_B] = before_K[found] + earlier_KJ[found, place_B[here_B]]
        return part_B, local_B

    def batch(self, samples: np.ndarray) -> Batch:
        """See :meth:`RowOrder.batch`; (B, T)."""
        samples_B = np.ascontiguousarray(samples, dtype=np.int64)
        part_B, local_B = self.locate(samples_B)
        shape = (len(samples_B), self.sequence_length)
        batch = Batch(torch.empty(shape, dtype=torch.int64), torch.empty(shape, dtype=torch.int64),
                      torch.empty(shape, dtype=torch.int32), torch.from_numpy(samples_B))  # fmt: skip
        for number, part in enumerate(self.parts.values()):
            here_B = np.flatnonzero(part_B == number)
            if len(here_B):
                for whole, rows in zip(batch[:3], part.batch(local_B[here_B])[:3], strict=True):
                    whole[torch.from_numpy(here_B)] = rows
        return batch

    def places(self, samples: np.ndarray) -> np.ndarray:
        """See :meth:`RowOrder.places`: in the store of all parts, int64 (B, T)."""
        part_B, local_B = self.locate(np.ascontiguousarray(samples, dtype=np.int64))
        place_BT = np.empty((len(part_B), self.sequence_length), np.int64)
        for number, (part, begin) in enumerate(zip(self.parts.values(), self._begins, strict=True)):
            here_B = part_B == number
            if here_B.any():
                place_BT[here_B] = begin + part.places(local_B[here_B])
        return place_BT

    def epochs_of(self, samples: np.ndarray) -> np.ndarray:
        """See :meth:`RowOrder.epochs_of`; int64 (B,)."""
        part_B, local_B = self.locate(samples)
        epoch_B = np.empty(len(samples), np.int64)
        for number, part in enumerate(self.parts.values()):
            here_B = part_B == number
            epoch_B[here_B] = part.epochs_of(local_B[here_B])
        return epoch_B

    def samples_of(self, begin: int, end: int, epoch: int) -> np.ndarray:
        """See :meth:`RowOrder.samples_of`, int64; of an epoch of the part, among the first 2^24 samples of the run."""
        number = int(np.searchsorted(self._begins, begin, side="right")) - 1
        first = int(self._begins[number])
        local_N = list(self.parts.values())[number].samples_of(begin - first, end - first, epoch)
        return self._quota.samples_of(number, local_N)

    def read(self, sample: int) -> dict[str, float]:
        """See :meth:`RowOrder.read`: tokens and epochs of each part before a sample, by ``data.tokens/NAME``."""
        values: dict[str, float] = {}
        for (name, part), count in zip(self.parts.items(), self._quota.before(sample).tolist(), strict=True):
            values |= {f"data.tokens/{name}": count * self.sequence_length,
                       f"data.epochs/{name}": part.read(count)["data.epochs"]}  # fmt: skip
        return values
