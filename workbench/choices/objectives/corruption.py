"""Choose labelled positions and what stands there: a pure function of (seed, sample index, position).

No generator and no state: an integer hash gives every position its random bits, so any number of ranks, any size of
micro-batch, a CPU or a GPU, a fresh or a resumed run corrupt a sample in exactly the same way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from workbench.choices.data.tokens import Batch, Vocabulary
from workbench.choices.objectives.groups import LENGTH_SHARES, Groups, Selection, groups_of, lengths_of
from workbench.choices.objectives.objective import Labelled

# Shape legend: B rows, T positions of a row, K labelled positions of a row, N = B * K, R replaceable ids.

SELECT, TREAT, REPLACE, LENGTH, SENTENCE = 1, 2, 3, 4, 5
"""Purposes: each draws from a stream of its own, so that no two decisions about a position are correlated."""

CPU = torch.device("cpu")
_WORD = (1 << 64) - 1
_GAMMA, _MULTIPLY_1, _MULTIPLY_2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_POSITION_BITS = 17  # rows are at most 65,536 long (data.sequence_length)


def _signed(word: int) -> int:
    """Return a 64-bit word as the int64 that torch knows."""
    return word - (1 << 64) if word >> 63 else word


def _shift_right(x: Tensor, bits: int) -> Tensor:
    """Return logical shift: torch's ``>>`` on int64 copies the sign."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _mix(x: Tensor) -> Tensor:
    """Return the finaliser of splitmix64 (Steele, Lea & Flood 2014) on int64, whose products wrap modulo 2**64."""
    x = (x ^ _shift_right(x, 30)) * _signed(_MULTIPLY_1)
    x = (x ^ _shift_right(x, 27)) * _signed(_MULTIPLY_2)
    return x ^ _shift_right(x, 31)


def _mix_word(x: int) -> int:
    """Return what :func:`_mix` makes of one word, a whole number below 2**64."""
    x = (x ^ (x >> 30)) * _MULTIPLY_1 & _WORD
    x = (x ^ (x >> 27)) * _MULTIPLY_2 & _WORD
    return x ^ (x >> 31)


def random_bits(seed: int, purpose: int, samples_B: Tensor, length: int) -> Tensor:
    """Return 63 random bits for every position of every sample.

    Args:
        seed: any non-negative integer below 2**63.
        purpose: one of :data:`SELECT`, :data:`TREAT`, :data:`REPLACE`, or a number of the caller's own.
        samples_B: int64 global sample indices, shape (B,).
        length: T, positions of a row.

    Returns:
        bits_BT: shape (B, T), int64 in [0, 2**63), uniform and independent over seeds, purposes, samples and positions.

    Example:
        >>> bits = random_bits(0, SELECT, torch.tensor([7, 8]), 4)
        >>> torch.equal(bits[1:], random_bits(0, SELECT, torch.tensor([8]), 4))
        True
    """
    return random_bits_at(seed, purpose, samples_B, torch.arange(length, device=samples_B.device)[None])


def random_bits_at(seed: int, purpose: int, samples_B: Tensor, column_BK: Tensor) -> Tensor:
    """Return the bits (B, K) that :func:`random_bits` has at some places of each row, without those of the others.

    Args:
        column_BK: places, int64 (B, K), or (1, K) for all rows.
    """
    # Whole numbers, not tensors: nothing has to travel to the device but one number in a kernel's arguments, and small
    # operations would take longer than those on the batch.
    stream = _signed(_mix_word((_mix_word(seed * _GAMMA & _WORD) + purpose * _GAMMA) & _WORD))
    row_B = _mix(stream + (samples_B + 1) * _signed(_GAMMA))
    return _mix(row_B[:, None] + (column_BK + 1) * _signed(_GAMMA)) & _signed(_WORD >> 1)


class Picks(NamedTuple):
    """The slots of rows, before anything is put there.

    Attributes:
        column_BK: places, rising.
        counts_BK: whether a label stands there; False for a slot that only keeps the shape static.
        groups: the groups around every place, (B, T) each; None where each token is picked for itself.
    """

    column_BK: Tensor
    counts_BK: Tensor
    groups: Groups | None


class Corruption:
    """Chooses and treats labelled positions of rows (B, T); holds the vocabulary's tables on the device.

    Args:
        vocabulary: special ids are never labelled and never used as random replacements; its pieces say where words
            begin.
        device: where batches will be.
    """

    def __init__(self, vocabulary: Vocabulary, device: torch.device) -> None:
        special = set(vocabulary.special)
        # Ids from `used` on only pad the matrix to a multiple of 64: shown as a replacement, one would give itself
        # away.
        replaceable = [token for token in range(vocabulary.used) if token not in special]
        self.replaceable_R = torch.tensor(replaceable, dtype=torch.int64, device=device)
        self.is_special_V = torch.zeros(vocabulary.size, dtype=torch.bool, device=device)
        self.is_special_V[list(special)] = True
        self.mask = vocabulary.mask
        pieces = vocabulary.pieces
        begins_V = pieces.begins(vocabulary.size) if pieces else np.ones(vocabulary.size, bool)
        self.begins_V = torch.from_numpy(begins_V).to(device)

    def __call__(
        self, batch: Batch, rate: float, seed: int, *, always_mask: bool, selection: Selection = "token"
    ) -> Labelled:
        """Return label ``slots_per_row(T, rate)`` positions of every row, at most, and corrupt them.

        Args:
            batch: rows of T tokens; only ``tokens_BT``, ``documents_BT`` and ``samples_B`` are read.
            rate: share of positions to label.
            always_mask: [MASK] at every labelled position; otherwise [MASK] 80%, a random token 10%, itself 10%.
            selection: what is labelled together.

        A row with fewer ordinary tokens than slots (a row of nearly empty documents) labels all of them; its spare
        slots stay as they are and weigh 0.
        """
        return self.show(batch, self.pick(batch, rate, seed, selection), seed, always_mask, selection == "span")

    def pick(self, batch: Batch, rate: float, seed: int, selection: Selection = "token") -> Picks:
        """Return the places (B, K) to label; see :meth:`__call__`."""
        tokens_BT, samples_B = batch.tokens_BT, batch.samples_B
        length = tokens_BT.shape[1]
        slots = slots_per_row(length, rate, selection)
        special_BT, groups = _looked_up(self.is_special_V, tokens_BT), None
        # The position in the low bits makes every key unique: equal choices on every device, whatever topk does
        # with ties. Special tokens get negative keys, below every other.
        position_T = torch.arange(length, device=tokens_BT.device)
        bits_BT = random_bits(seed, SELECT, samples_B, length)
        if selection == "token":
            high_BT = bits_BT & -(1 << _POSITION_BITS)
            key_BT = torch.where(special_BT, -1 - position_T, high_BT | position_T)
        else:
            lengths_BT = None
            if (shares := LENGTH_SHARES.get(selection)) is not None:
                lengths_BT = lengths_of(random_bits(seed, LENGTH, samples_B, length), shares)
            groups = groups_of(_looked_up(self.begins_V, tokens_BT), special_BT, batch.documents_BT, slots, lengths_BT)
            # A group has the bits of its first place, and its tokens follow one another from the left.
            shift = 2 * _POSITION_BITS
            high_BT = bits_BT.gather(1, groups.first_BT) >> shift << shift | groups.first_BT << _POSITION_BITS
            key_BT = torch.where(groups.open_BT, high_BT | (length - 1 - position_T), -1 - position_T)
        # (B, T) -> (B, K). Sorted, since the order in which topk leaves its picks is not defined and the sum of the
        # losses would change in its last bits with it.
        column_BK = key_BT.topk(slots, dim=1, sorted=False).indices.sort(dim=1).values
        if groups is None:
            return Picks(column_BK, ~special_BT.gather(1, column_BK), None)
        least_B1 = key_BT.gather(1, column_BK).amin(1, keepdim=True)
        # A word is whole if its last token was picked.
        last_BK = groups.word_end_BT.gather(1, column_BK) - 1
        whole_BK = key_BT.gather(1, last_BK) >= least_B1
        return Picks(column_BK, whole_BK & groups.open_BT.gather(1, column_BK), groups)

    def show(self, batch: Batch, picks: Picks, seed: int, always_mask: bool, together: bool) -> Labelled:
        """Return rows (B, T) with something at the picked places, decided for each token or, ``together``, group."""
        tokens_BT, samples_B = batch.tokens_BT, batch.samples_B
        rows, length = tokens_BT.shape
        column_BK, counts_BK, groups = picks
        true_BK = tokens_BT.gather(1, column_BK)
        shown_BK = torch.full_like(true_BK, self.mask)
        if not always_mask:
            treated_BK = column_BK
            if groups is not None and together:
                treated_BK = groups.first_BT.gather(1, column_BK)
            # 63 bits modulo 10 prefer some residues by less than 1e-17: no need to draw again.
            tenth_BK = random_bits_at(seed, TREAT, samples_B, treated_BK) % 10
            draw_BK = random_bits_at(seed, REPLACE, samples_B, column_BK)
            random_BK = self.replaceable_R[draw_BK % len(self.replaceable_R)]
            shown_BK = torch.where(tenth_BK < 8, shown_BK, torch.where(tenth_BK < 9, random_BK, true_BK))
        # Spare slots stand on [CLS], [SEP] or part of a word, which stay what they are.
        shown_BK = torch.where(counts_BK, shown_BK, true_BK)
        # (B, K) columns -> (B * K,) places in the flattened rows, which is how the backbone is asked for them.
        row_B1 = torch.arange(rows, device=tokens_BT.device)[:, None] * length
        return Labelled(
            tokens_BT.scatter(1, column_BK, shown_BK),
            (row_B1 + column_BK).flatten(),
            true_BK.flatten(),
            counts_BK.flatten().float(),
        )


def labelled_places(seen: Labelled) -> Tensor:
    """Return which places of rows have a label that counts, bool (B, T)."""
    labelled_M = torch.zeros(seen.tokens_BT.numel(), dtype=torch.bool)
    index_N = torch.arange(len(labelled_M)) if seen.index_N is None else seen.index_N
    labelled_M[index_N[seen.weight_N > 0]] = True
    return labelled_M.view_as(seen.tokens_BT)


class Corrupting:
    """Tables of the vocabulary for models that corrupt rows (B, T), made once for each device."""

    vocabulary: Vocabulary
    # No buffers: derived from the vocabulary, so they have no place in a checkpoint. Replaced, never changed in place:
    # a copy of the model that only traces its operations must not leave its tables here.
    _tables: Mapping[torch.device, Corruption] = MappingProxyType({})

    def _corrupt(self, batch: Batch) -> Corruption:
        device = batch.tokens_BT.device
        # At the first batch instead of in __init__: only then is it certain on which device the run takes place.
        if device not in self._tables:
            self._tables = {**self._tables, device: Corruption(self.vocabulary, device)}
        return self._tables[device]


def _looked_up(table_V: Tensor, tokens_BT: Tensor) -> Tensor:
    """Return a table's entry for each token, (B, T); a third of the time of indexing on a CPU."""
    return table_V.index_select(0, tokens_BT.flatten()).view_as(tokens_BT)


def labels_per_row(length: int, rate: float) -> int:
    """Return labelled positions of a row of ``length`` tokens: round(rate * length), at least 1 and at most all."""
    return min(length, max(1, round(rate * length)))


def slots_per_row(length: int, rate: float, selection: Selection = "token") -> int:
    """Return the slots of a row: :func:`labels_per_row`, for spans rounded up (SpanBERT)."""
    if selection != "span":
        return labels_per_row(length, rate)
    # What is above a whole number by rounding alone is that number.
    return min(length, max(1, math.ceil(rate * length - 1e-9)))


def spread(seed: int, purpose: int, samples_B: Tensor) -> Tensor:
    """Return one number in [0, 1) for every sample, (B,), float64, such that those of neighbours lie evenly.

    Steps of the golden ratio modulo 1 from a start that seed and purpose decide: of any B samples in a row, the share
    below a threshold is that threshold within about (1 + log B) / B, however a step is cut into parts and over ranks.

    Source: Weyl 1916, sequences k * alpha modulo 1.

    Example:
        >>> (spread(0, 1, torch.arange(100)) < 0.25).sum().item()
        25
    """
    start = random_bits(seed, purpose, samples_B.new_zeros(1), 1)[0, 0]
    # Products wrap modulo 2**64; the upper 53 bits as a float64.
    return _shift_right(start + samples_B * _signed(_GAMMA), 11).double() * 2.0**-53
