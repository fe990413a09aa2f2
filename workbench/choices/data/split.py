"""The fixed rule that splits documents into train and held-out."""

from __future__ import annotations

import hashlib

RULE = "first 8 bytes of BLAKE2b of the text, as a share of 2^64, below heldout_fraction"


def document_hash(text: str) -> int:
    """Hash of a document's text (8 bytes of BLAKE2b as one integer), the same on every machine and in every process."""
    # Not hash(), which Python salts anew in every process. surrogatepass: broken text must land on one side as well.
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def is_heldout(text: str, fraction: float) -> bool:
    """Whether a document is held out.

    A function of its text alone: documents added or moved elsewhere never change sides, equal documents are on one
    side, and a larger fraction keeps what a smaller one held out.

    Args:
        text: the whole document.
        fraction: share of documents to hold out, between 0 and 1.

    Example:
        >>> sum(is_heldout(f"document {i}", 0.05) for i in range(10_000))
        530
    """
    return document_hash(text) < fraction * 2.0**64
