"""Rows that hold two segments, and the part of the loss that tells how they belong together.

The longest piece of a document in a row becomes ``[cls] A [sep] B [sep]``, cut where a sentence ends. In half of them A
and B are swapped (ALBERT's sentence order), or B is of another document (BERT's next sentence). All of it is a function
of (seed, sample, text).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from workbench.base.errors import DataError
from workbench.choices.data.order import RowOrder
from workbench.choices.data.tokens import Batch, TokenStore, Vocabulary
from workbench.choices.objectives.corruption import SENTENCE, random_bits

# Shape legend: B rows, T positions, D width, V ids of the vocabulary, N tokens of a segment or document.

Sentence = Literal["none", "order", "next"]

SHORTEST = 8
"""Tokens of both segments, at least."""
_TRIES = 16
_LOOKED_AT = 2000
MOST_SINGLE = 0.5
"""Share of documents of one sentence from which on a text is refused."""


class PairedRows(RowOrder):
    """Rows (B, T) of an order with a pair in each, where the text has one.

    Args:
        order: of the text.
        vocabulary: says where sentences end.
        sentence: ``order`` or ``next``.
    """

    def __init__(self, order: RowOrder, vocabulary: Vocabulary, sentence: Sentence) -> None:
        super().__init__(order.store, order.sequence_length, order.seed, order.arrange)
        self._vocabulary, self._sentence = vocabulary, sentence
        self._ends_V = sentence_ends(vocabulary)

    def of_length(self, sequence_length: int) -> RowOrder:
        """See :meth:`RowOrder.of_length`; pairs in rows of another length, in tokens."""
        if sequence_length == self.sequence_length:
            return self
        return PairedRows(super().of_length(sequence_length), self._vocabulary, self._sentence)

    def batch(self, samples: np.ndarray) -> Batch:
        """See :meth:`RowOrder.batch`; positions and documents (B, T) stay as they are."""
        batch = super().batch(samples)
        draws = random_bits(self.seed, SENTENCE, batch.samples_B, 3).tolist()
        tokens_BT, documents_BT = batch.tokens_BT.numpy(), batch.documents_BT.numpy()
        for row, draw in enumerate(draws):
            sizes = np.bincount(documents_BT[row])
            first = int(sizes[: sizes.argmax()].sum())
            piece = tokens_BT[row, first : first + int(sizes.max())]
            begin = int(batch.positions_BT[row, first]) + self._place(int(batch.samples_B[row]), first)
            pair = self._pair(piece, draw, begin)
            if pair is not None:
                piece[:] = pair
        return batch

    def _place(self, sample: int, column: int) -> int:
        """Return place in the store of a column of a row."""
        plan = self.plan(sample // self.rows)
        place = int(plan.rows_R[sample % self.rows]) * self.sequence_length + column
        document = int(np.searchsorted(plan.bounds_D1, place, side="right")) - 1
        return int(plan.starts_D[document] + place - plan.bounds_D1[document])

    def _pair(self, piece_N: np.ndarray, draw: list[int], place: int) -> np.ndarray | None:
        """Return the piece as two segments, of its own length; None where it has no two.

        Args:
            draw: random bits: whether to swap or replace, and two for the other document.
            place: of the piece in the store.
        """
        parts = segments(piece_N, self._vocabulary, self._ends_V)
        if parts is None:
            return None
        first_N, second_N = parts
        other_N = self._of_another(len(second_N), draw, place) if self._sentence == "next" else second_N
        if other_N is None:
            return None
        if draw[0] & 1:
            first_N, second_N = (second_N, first_N) if self._sentence == "order" else (first_N, other_N)
        return framed_pair(first_N, second_N, self._vocabulary)

    def _of_another(self, size: int, draw: list[int], place: int) -> np.ndarray | None:
        """Return ``size`` tokens of another document, from the beginning of a sentence; None where none is as long."""
        offsets_D1 = self.store.offsets_D1
        mine = int(np.searchsorted(offsets_D1, place, side="right")) - 1
        for attempt in range(_TRIES):
            document = (draw[1] + attempt) % self.store.documents
            low, high = int(offsets_D1[document]) + 1, int(offsets_D1[document + 1]) - 1 - size
            if document == mine or high < low:
                continue
            begin = low + draw[2] % (high - low + 1)
            ends_N = np.flatnonzero(self._ends_V[self._ids_N[low:begin]])
            begin = low + int(ends_N[-1]) + 1 if len(ends_N) else low
            return np.asarray(self._ids_N[begin : begin + size], np.int64)
        return None


def sentence_ends(vocabulary: Vocabulary) -> np.ndarray:
    """Return whether each token ends a sentence, bool (V,); none does where no tokenizer is at hand."""
    pieces = vocabulary.pieces
    return np.zeros(vocabulary.size, bool) if pieces is None else pieces.ends_sentence(vocabulary.size)


def segments(piece_N: np.ndarray, vocabulary: Vocabulary, ends_V: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return two segments of N - 3 tokens in all, cut at the end of a sentence that is nearest the middle.

    None for a piece without such an end, or below :data:`SHORTEST`.
    """
    content_N = piece_N[int(piece_N[0] == vocabulary.cls) :][: len(piece_N) - 3]
    if len(content_N) < SHORTEST:
        return None
    # Behind the last token nothing follows.
    cuts = np.flatnonzero(ends_V[content_N[:-1]]) + 1
    if not len(cuts):
        return None
    cut = int(cuts[np.abs(cuts - len(content_N) / 2).argmin()])
    return content_N[:cut].copy(), content_N[cut:].copy()


def framed_pair(first_N: np.ndarray, second_N: np.ndarray, vocabulary: Vocabulary) -> np.ndarray:
    """Return ``[cls] first [sep] second [sep]``, (N + 3,)."""
    sep = [vocabulary.sep]
    return np.concatenate([[vocabulary.cls], first_N, sep, second_N, sep])


def pairs_of(batch: Batch, sep: int) -> tuple[Tensor, Tensor]:
    """Return where the pair of each row (B, T) begins, in the flattened rows, and whether there is one; (B,) each.

    A pair is known by the [sep] inside its piece; other pieces have one at their end alone.
    """
    tokens_BT, positions_BT, documents_BT, _ = batch
    rows, length = tokens_BT.shape
    inside_BT = (tokens_BT == sep) & (positions_BT > 0)
    inside_BT[:, :-1] &= documents_BT[:, 1:] == documents_BT[:, :-1]
    inside_BT[:, -1] = False
    column_B1 = inside_BT.int().argmax(1, keepdim=True)
    row_B1 = torch.arange(rows, device=tokens_BT.device)[:, None] * length
    return (row_B1 + column_B1 - positions_BT.gather(1, column_B1))[:, 0], inside_BT.any(1)


def changed(batch: Batch, seed: int) -> Tensor:
    """Return whether the pair of each row is swapped, or its second segment of another document; int64 (B,)."""
    return random_bits(seed, SENTENCE, batch.samples_B, 1)[:, 0] & 1


class SentenceHead(nn.Module):
    """States at [cls], (B, D) -> logits (B, 2), as BERT's pooler and classifier: W2 tanh(W1 x + b1) + b2."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.pool, self.classify = nn.Linear(width, width), nn.Linear(width, 2)
        for layer in (self.pool, self.classify):
            nn.init.normal_(layer.weight, std=0.02)
            nn.init.zeros_(layer.bias)

    def forward(self, x_BD: Tensor) -> Tensor:
        """Return the logits (B, 2) of "as in the text" and "changed"."""
        logits_B2: Tensor = self.classify(torch.tanh(self.pool(x_BD)))
        return logits_B2


def check_sentences(store: TokenStore, vocabulary: Vocabulary, sentence: Sentence) -> None:
    """Refuse a text whose documents hold one sentence each: there are no two segments to tell apart.

    Up to 2,000 documents are looked at, evenly spread.

    Raises:
        DataError: names the share of documents with one sentence only.
    """
    ends_V = sentence_ends(vocabulary)
    step = -(-store.documents // _LOOKED_AT)
    looked_at = range(0, store.documents, step)
    offsets_D1 = store.offsets_D1
    # [CLS] first, [SEP] last; the end of a document's last token divides nothing.
    two = sum(bool(ends_V[store.ids_N[offsets_D1[d] + 1 : offsets_D1[d + 1] - 2]].any()) for d in looked_at)
    single = 1 - two / max(1, len(looked_at))
    if single > MOST_SINGLE or (sentence == "next" and store.documents < 2):
        raise DataError(
            f"objective.sentence '{sentence}' needs documents of two sentences or more, and {single:.0%} of the "
            f"{store.documents:,} have one only; use sentence 'none', or text in longer documents"
        )
