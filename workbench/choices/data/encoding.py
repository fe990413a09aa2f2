"""From documents to token stores: ids, and for held-out text the bytes of each token."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from workbench.choices.data.cutting import batched, cut
from workbench.choices.data.store import StoreWriter
from workbench.choices.data.tokens import Vocabulary

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

# Shape legend: N tokens of a document with its frame, P tokens of a piece.

BATCH_CHARACTERS = 2_000_000
"""Text encoded at a time: enough to keep every core busy, little enough to hold its tokens in memory."""


def write_documents(
    tokenizer: Tokenizer, vocabulary: Vocabulary, texts: Iterable[str], writer: StoreWriter, *, with_bytes: bool
) -> None:
    """Encode documents as ``[CLS] tokens [SEP]`` and append them to a store, in order.

    Args:
        texts: the documents; one that encodes to nothing is left out.
        with_bytes: also write the bytes of text of each token, which takes a third longer.
    """
    for batch in batched(texts, BATCH_CHARACTERS):
        writer.words += sum(len(text.split()) for text in batch)
        writer.text_bytes += sum(len(text.encode("utf-8", "surrogatepass")) for text in batch)
        ids, sizes = _encoded(tokenizer, batch, with_bytes=with_bytes)
        framed = [_framed(parts, vocabulary.cls, vocabulary.sep) for parts in ids]
        kept = [number for number, one in enumerate(framed) if len(one) > 2]
        if kept:
            lengths = np.array([len(framed[number]) for number in kept])
            ids_N = np.concatenate([framed[number] for number in kept])
            bytes_N = np.concatenate([_framed(_carried(sizes[n]), 0, 0) for n in kept]) if with_bytes else None
            writer.add(ids_N, lengths, bytes_N)


def framed_documents(tokenizer: Tokenizer, vocabulary: Vocabulary, batch: list[str]) -> list[np.ndarray]:
    """Return the ids of each document of a batch, ``[CLS] tokens [SEP]``, uint32 (N,), as a store holds them."""
    return [_framed(parts, vocabulary.cls, vocabulary.sep) for parts in _encoded(tokenizer, batch, with_bytes=False)[0]]


def _encoded(
    tokenizer: Tokenizer, batch: list[str], *, with_bytes: bool
) -> tuple[list[list[np.ndarray]], list[list[np.ndarray]]]:
    """Return the ids of the pieces of each document, and the bytes of text that each stands for where asked."""
    pieces = [(number, piece) for number, text in enumerate(batch) for piece in cut(text, BATCH_CHARACTERS // 2)]
    ids: list[list[np.ndarray]] = [[] for _ in batch]
    sizes: list[list[np.ndarray]] = [[] for _ in batch]
    for group in batched(pieces, BATCH_CHARACTERS, size=lambda piece: len(piece[1])):
        # The fast way gives no offsets. Without special tokens: [CLS] and [SEP] frame documents, not pieces.
        encode = tokenizer.encode_batch if with_bytes else tokenizer.encode_batch_fast
        encodings = encode([piece for _, piece in group], add_special_tokens=False)
        for (number, piece), encoding in zip(group, encodings, strict=True):
            ids[number].append(np.array(encoding.ids, np.uint32))
            if with_bytes:
                sizes[number].append(token_bytes(piece, encoding))
    return ids, sizes


def token_bytes(text: str, encoding: Encoding) -> np.ndarray:
    """Return UTF-8 bytes of a text that each of its tokens stands for, int64 of shape (P + 1,).

    A token reaches from the end of the one before it to its own end, so white space and whatever the tokenizer drops
    belong to the token behind. The last entry counts what follows the last token. The sum is the text's.
    """
    content = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
    # Where each character begins (a byte that continues one is 0b10xxxxxx), and where the text ends.
    begins = np.append(np.flatnonzero((content & 0xC0) != 0x80), len(content))
    ends = begins[np.array([end for _, end in encoding.offsets], np.int64)]
    # Tokens that share a character have one end: the first of them gets it.
    ends = np.maximum.accumulate(np.concatenate([[0], ends, [len(content)]]))
    return np.diff(ends)


def _carried(parts: list[np.ndarray]) -> list[np.ndarray]:
    """Return bytes of a document's tokens from those of its pieces: what a piece leaves belongs to the token behind."""
    carried, found = 0, []
    for part in parts:
        sizes = part[:-1].copy()
        carried += int(part[-1])
        if len(sizes):
            sizes[0] += carried - int(part[-1])
            carried = int(part[-1])
            found.append(sizes)
    if found:
        found[-1][-1] += carried
    return found


def _framed(parts: list[np.ndarray], first: int, last: int) -> np.ndarray:
    return np.concatenate([[first], *parts, [last]]).astype(np.uint32)
