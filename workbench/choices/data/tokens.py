"""Prepared text as everything downstream sees it: vocabulary, token store, batch."""

from __future__ import annotations

import mmap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from workbench.choices.data.pieces import Pieces

if TYPE_CHECKING:
    import torch

# Shape legend: B rows of a batch, T positions of a row, N tokens, D documents.


@dataclass(frozen=True)
class Vocabulary:
    """The token ids that objectives and architectures need to know.

    Attributes:
        size: number of ids including padding to a multiple of 64 (rows of the embedding matrix).
        used: ids below this are real tokens (``used <= size``).
        cls, sep, mask, pad, unk: special ids; every stored document is ``[cls] tokens [sep]``.
        pieces: names of the tokens; None where no tokenizer is at hand. Every token is a word of its own then.
    """

    size: int
    used: int
    cls: int
    sep: int
    mask: int
    pad: int
    unk: int
    pieces: Pieces | None = field(default=None, compare=False, repr=False, kw_only=True)

    def ids(self) -> dict[str, int]:
        """Return sizes and special ids as JSON keeps them: all but the names."""
        return {name: value for name, value in vars(self).items() if name != "pieces"}

    @property
    def special(self) -> tuple[int, ...]:
        """Ids of the tokens that are never masked and never predicted."""
        return tuple(sorted({self.cls, self.sep, self.mask, self.pad}))


@dataclass(frozen=True)
class TokenStore:
    """One split: a flat memory-mapped array of ids and the offsets of its documents.

    Attributes:
        ids_N: uint16 or uint32 ids, documents back to back, each ``[cls] tokens [sep]``.
        offsets_D1: int64, ``offsets[d]:offsets[d + 1]`` is document d; one more entry than documents.
        bytes_N: uint32, UTF-8 bytes of text that each token stands for; they sum to the text's own. Of the held-out
            split only, None elsewhere.
    """

    ids_N: np.ndarray
    offsets_D1: np.ndarray
    bytes_N: np.ndarray | None = None

    @property
    def tokens(self) -> int:
        """Stored tokens, special ones included."""
        return int(self.offsets_D1[-1])

    @property
    def documents(self) -> int:
        """Stored documents, each framed by its [CLS] and [SEP] tokens."""
        return len(self.offsets_D1) - 1

    def part(self, documents: range) -> TokenStore:
        """Return the store of some documents that stand next to each other, over the same mapped tokens (N,)."""
        offsets_D1 = self.offsets_D1[documents.start : documents.stop + 1]
        begin, end = int(offsets_D1[0]), int(offsets_D1[-1])
        bytes_N = None if self.bytes_N is None else self.bytes_N[begin:end]
        return TokenStore(self.ids_N[begin:end], offsets_D1 - begin, bytes_N)

    def release(self) -> None:
        """Let go of the mapped pages of the N tokens: those that were read stay in the system's cache alone."""
        mapped = getattr(self.ids_N, "_mmap", None)
        if mapped is not None:
            mapped.madvise(mmap.MADV_DONTNEED)

    def bytes_of(self, places_S: np.ndarray) -> np.ndarray:
        """Return bytes of text of the tokens at some places, int64 of shape (S,);
        zeros where the store does not know.
        """
        if self.bytes_N is None:
            return np.zeros(len(places_S), np.int64)
        return np.asarray(self.bytes_N[places_S], np.int64)


class Batch(NamedTuple):
    """Full rows of packed documents; no padding, ever.

    Attributes:
        tokens_BT: int64 token ids, shape (B, T) like the next two.
        positions_BT: int64 position within the document's piece in this row (restarts at 0).
        documents_BT: int32 index of the piece within the row, 0, 1, 2, ...; attention stays inside a piece.
        samples_B: int64 global sample index; masks are a function of (seed, sample index) alone.
    """

    tokens_BT: torch.Tensor
    positions_BT: torch.Tensor
    documents_BT: torch.Tensor
    samples_B: torch.Tensor

    def to(self, device: torch.device | str) -> Batch:
        """Return the same batch, shapes (B, T) and (B,), on ``device``."""
        # Overlaps with computing only from pinned memory; from any other it waits, which is right as well.
        return Batch(*(tensor.to(device, non_blocking=True) for tensor in self))


class StorePart(NamedTuple):
    """Place of one source in both splits of prepared text.

    Attributes:
        train, heldout: numbers of its documents in the split's store.
    """

    train: range
    heldout: range


@dataclass(frozen=True)
class PreparedData:
    """Prepared text: both splits, the vocabulary and where all of it came from.

    Attributes:
        train, heldout: token stores; no document is in both.
        vocabulary: special ids and size.
        tokenizer_file: path of the ``tokenizer.json`` (readable by ``tokenizers.Tokenizer.from_file``).
        counts_V: int64, occurrences of each id in the training split, special ones included.
        fingerprint: JSON-able record of sources, tokenizer, counts and hashes; written into every run.
        parts: of a mixture, by name; empty for all other data.
        losses_D: float64, nats per token of each training document under a reference model, where an order goes by it.
    """

    train: TokenStore
    heldout: TokenStore
    vocabulary: Vocabulary
    tokenizer_file: str
    counts_V: np.ndarray
    fingerprint: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, StorePart] = field(default_factory=dict)
    losses_D: np.ndarray | None = None
