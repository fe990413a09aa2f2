"""The held-out set: which tokens every model is scored on, fixed by the text and a number of tokens, by nothing else.

The held-out documents stand in one fixed order, back to back: the stream. Its first N tokens are the set. Masked models
are scored on 15% of the ordinary tokens of each span of :data:`REFERENCE_LENGTH`, every one of them shown as [MASK];
causal models on every token but the first of a document. A recipe's row length decides only how much context stands
around a scored token, never which tokens are scored.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from workbench.base.errors import DataError
from workbench.base.files import write_bytes
from workbench.choices.data.order import shuffled
from workbench.choices.data.tokens import Batch, TokenStore, Vocabulary
from workbench.choices.objectives.corruption import SELECT, random_bits
from workbench.choices.objectives.objective import Labelled
from workbench.telemetry.baselines import SCORE_VERSION

# Shape legend: N tokens of the stream, S scored ones, D documents, B rows, T positions of a row, P spans.

REFERENCE_LENGTH = 512
FEWEST_TOKENS = 16_384
"""Size of the smallest part; an eighth of the usual set, so that no part costs more than that one's."""
MASKED_SHARE = 0.15
_PART = "part_"
SEED = 0x5EED_0000_0000
"""Seed of the masked positions. Recipes' seeds are below 2**31, so no training mask is drawn from this stream."""


@dataclass(frozen=True)
class HeldoutSet:
    """The tokens that a model is scored on, and the rows that show them to it.

    Attributes:
        ids_N: int64 ids of the stream's first N tokens.
        document_N: number of each token's document in the stream: 0, 1, 2, ...
        start_N: place in the stream at which that document begins.
        scored_S: places of the scored tokens, rising.
        bytes_S: UTF-8 bytes of text that each scored token stands for.
        vocabulary: of the tokens.
        causal: whether every next token is scored, or masked ones.
        seen_S: whether the window of three tokens around each scored one stands in the training text
            (``objectives/windows.py``); None where nobody has looked.
        parts: of a mixture, which part each scored token is of, (S,), by the part's name; empty for all other text.
    """

    ids_N: np.ndarray
    document_N: np.ndarray
    start_N: np.ndarray
    scored_S: np.ndarray
    bytes_S: np.ndarray
    vocabulary: Vocabulary
    causal: bool
    seen_S: np.ndarray | None = None
    parts: Mapping[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def of(
        cls, store: TokenStore, vocabulary: Vocabulary, tokens: int, *, causal: bool,
        parts: Mapping[str, range] | None = None,
    ) -> HeldoutSet:  # fmt: skip
        """Return the set of a held-out store.

        Args:
            tokens: size of the set, at most; rounded down to whole spans where the text fills one.
            parts: of a mixture: numbers of the documents of each.
        """
        size = min(tokens, store.tokens)
        size -= size % REFERENCE_LENGTH if size >= REFERENCE_LENGTH else 0
        # Shuffled once: a set that is a part of the text still holds documents from everywhere.
        order_D = shuffled(0, 0, 0, store.documents)
        lengths_D = np.diff(store.offsets_D1)[order_D]
        order_D = order_D[: int(np.searchsorted(np.cumsum(lengths_D), size)) + 1]
        lengths_D = lengths_D[: len(order_D)]
        begins_D = np.cumsum(lengths_D) - lengths_D
        document_N = np.repeat(np.arange(len(order_D)), lengths_D)[:size]
        start_N = begins_D[document_N]
        source_N = store.offsets_D1[order_D][document_N] + np.arange(size) - start_N
        ids_N = np.asarray(store.ids_N[source_N], np.int64)
        scored_S = np.flatnonzero(np.arange(size) > start_N) if causal else _masked_places(ids_N, vocabulary)
        document_S = order_D[document_N[scored_S]]
        part_S = {name: (document_S >= part.start) & (document_S < part.stop) for name, part in (parts or {}).items()}
        bytes_S = store.bytes_of(source_N[scored_S])
        return cls(ids_N, document_N, start_N, scored_S, bytes_S, vocabulary, causal, parts=part_S)

    def save(self, path: Path) -> None:
        """Write the set whole or not at all, in the narrowest dtypes and compressed: some 2 bytes per token.

        Raises:
            OSError: the disk is full or the folder is gone.
        """
        scored_N = np.zeros(self.tokens, bool)
        scored_N[self.scored_S] = True
        file = io.BytesIO()
        arrays: dict[str, Any] = {
            "ids_N": _narrow(self.ids_N),
            "starts_D": _narrow(np.unique(self.start_N)),
            "scored_N": np.packbits(scored_N),
            "bytes_S": _narrow(self.bytes_S),
            "causal": np.array(self.causal),
        }
        if self.seen_S is not None:
            arrays["seen_S"] = np.packbits(self.seen_S)
        arrays |= {f"{_PART}{name}": np.packbits(part_S) for name, part_S in self.parts.items()}
        np.savez_compressed(file, **arrays)
        write_bytes(path, file.getvalue())

    @classmethod
    def load(cls, path: Path, vocabulary: Vocabulary) -> HeldoutSet:
        """Read a set that :meth:`save` wrote.

        Raises:
            DataError: missing or damaged.
        """
        # Not left to `open`: that would wait for a pipe.
        if not path.is_file():
            raise DataError(f"'{path}' is missing")
        try:
            with np.load(path) as arrays:
                ids_N, starts_D, bytes_S = (arrays[name].astype(np.int64) for name in ("ids_N", "starts_D", "bytes_S"))
                scored_S = np.flatnonzero(np.unpackbits(arrays["scored_N"], count=len(ids_N)))
                causal = bool(arrays["causal"])
                # Runs of before there were windows have none.
                bits = arrays.get("seen_S")
                seen_S = None if bits is None else np.unpackbits(bits, count=len(scored_S)).astype(bool)
                parts = {name.removeprefix(_PART): np.unpackbits(arrays[name], count=len(scored_S)).astype(bool)
                         for name in arrays.files if name.startswith(_PART)}  # fmt: skip
            document_N = np.searchsorted(starts_D, np.arange(len(ids_N)), side="right") - 1
            start_N = starts_D[document_N]
            return cls(ids_N, document_N, start_N, scored_S, bytes_S, vocabulary, causal, seen_S, parts)
        # Of any kind: zipfile, zlib and numpy each have errors of their own for bytes they cannot read.
        except Exception as error:
            raise DataError(f"'{path}' is damaged: {error}") from None

    @property
    def tokens(self) -> int:
        """N, scored or not."""
        return len(self.ids_N)

    def part(self, share: int) -> HeldoutSet:
        """Return the first whole spans that hold one token in ``share`` of the set, scored alike.

        At least :data:`FEWEST_TOKENS` stay, all of a smaller set: scores during a run and at its end then join.
        """
        spans = max(self.tokens // share, FEWEST_TOKENS) // REFERENCE_LENGTH
        size = min(self.tokens, spans * REFERENCE_LENGTH)
        count = int(np.searchsorted(self.scored_S, size))
        return replace(
            self, ids_N=self.ids_N[:size], document_N=self.document_N[:size], start_N=self.start_N[:size],
            scored_S=self.scored_S[:count], bytes_S=self.bytes_S[:count],
            seen_S=None if self.seen_S is None else self.seen_S[:count],
            parts={name: part_S[:count] for name, part_S in self.parts.items()},
        )  # fmt: skip

    def described(self) -> dict[str, Any]:
        """Describe the score as JSON; ``kind`` as in :class:`workbench.telemetry.baselines.References`."""
        return {
            "kind": "next-token" if self.causal else "masked-only",
            "version": SCORE_VERSION,
            "positions": len(self.scored_S),
            "tokens": self.tokens,
            "bytes": int(self.bytes_S.sum()),
        }

    def next_tokens(self) -> HeldoutSet:
        """Return the same tokens, every one but the first of a document scored from those before it."""
        scored_S = np.flatnonzero(np.arange(self.tokens) > self.start_N)
        return replace(self, scored_S=scored_S, bytes_S=np.zeros(len(scored_S), np.int64), causal=True, seen_S=None,
                       parts={})  # fmt: skip

    def batches(self, length: int, rows: int, *, shifted: bool = False) -> Iterator[tuple[Batch, Labelled]]:
        """Yield rows that show every scored token once, with what of its document fits, and what is to be predicted.

        Rows of masked models lie side by side. Those of causal models overlap by one token, because the first of a row
        cannot be predicted in it. The last row begins early enough to be full; what it repeats is not scored again.
        Rows without a scored token are left out.

        Args:
            length: T, tokens per row; a shorter set is one row.
            rows: B, rows per batch.
            shifted: a [MASK] is read from the position before it: rows of masked models overlap by that one, too.
        """
        length, before = min(length, self.tokens), int(self.causal or shifted)
        stride = max(1, length - before)
        # The first place that each row scores; it scores `stride` of them.
        first_R = np.unique((self.scored_S - before) // stride) * stride + before
        hidden_N = np.zeros(self.tokens, bool)
        hidden_N[self.scored_S] = True
        for begin in range(0, len(first_R), rows):
            yield self._batch(first_R[begin : begin + rows] - before, begin, length, before, hidden_N)

    def _batch(
        self, begin_B: np.ndarray, sample: int, length: int, before: int, scored_N: np.ndarray
    ) -> tuple[Batch, Labelled]:
        begin_B1 = np.minimum(begin_B, self.tokens - length)[:, None]
        place_BT = begin_B1 + np.arange(length)
        document_BT = self.document_N[place_BT]
        batch = Batch(
            torch.from_numpy(self.ids_N[place_BT]),
            torch.from_numpy(place_BT - np.maximum(self.start_N[place_BT], begin_B1)),
            torch.from_numpy((document_BT - document_BT[:, :1]).astype(np.int32)),
            torch.arange(sample, sample + len(begin_B)),
        )
        first_B1 = begin_B[:, None] + before
        ours_BT = (place_BT >= first_B1) & (place_BT < first_B1 + max(1, length - before)) & scored_N[place_BT]
        index_S = np.flatnonzero(ours_BT)
        labels_S = self.ids_N[place_BT.ravel()[index_S]]
        shown_BT = batch.tokens_BT
        if not self.causal:
            # Those of the overlap as well: what another row scores must not be read here.
            shown_BT = shown_BT.masked_fill(torch.from_numpy(scored_N[place_BT]), self.vocabulary.mask)
        index_S = index_S - int(self.causal)
        ones_S = torch.ones(len(index_S))
        return batch, Labelled(shown_BT, torch.from_numpy(index_S), torch.from_numpy(labels_S), ones_S)


def _narrow(values: np.ndarray) -> np.ndarray:
    """Return the same whole numbers, none negative, in the smallest dtype that holds them."""
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))


def _masked_places(ids_N: np.ndarray, vocabulary: Vocabulary) -> np.ndarray:
    """Return 15% of the ordinary tokens of every span (at least one),
    chosen by the lowest of the places' random bits.
    """
    spans = -(-len(ids_N) // REFERENCE_LENGTH)
    key_PT = random_bits(SEED, SELECT, torch.arange(spans), REFERENCE_LENGTH).numpy()
    # What may not be chosen comes last: special tokens, and places behind the end of a set below one span.
    ordinary_PT = np.zeros(key_PT.shape, bool)
    ordinary_PT.ravel()[: len(ids_N)] = ~np.isin(ids_N, vocabulary.special)
    key_PT = np.where(ordinary_PT, key_PT, np.iinfo(np.int64).max)
    rank_PT = key_PT.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
    ordinary_P = ordinary_PT.sum(axis=1)
    count_P = np.minimum(ordinary_P, np.maximum(1, np.rint(MASKED_SHARE * ordinary_P)))
    return np.flatnonzero(rank_PT < count_P[:, None])
