"""The fixed rule that splits text into train and held-out: by source where it can, so that held-out text is foreign."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

from workbench.choices.data.cutting import cut
from workbench.choices.data.data import Sourced

RULE = "whole sources, else documents, else parts of them, by the first 8 bytes of BLAKE2b, until heldout_fraction"
PART_CHARACTERS = 8000
"""About two pages: documents of at least twice this may be cut where whole ones do not meet the share."""
SHORTER_PARTS = (4000, 2000, 1000, 500, 250)
"""Shorter parts, of which the longest that come near the share are taken where nothing else is held out."""
MOST_CHARACTERS = 4_000_000
"""With more text, parts of two pages hold something out, unless next to nothing was asked for."""
NEAR = (0.5, 2.0)
"""Factors of the wanted share between which the held-out share must lie; else text is split more finely."""


class Labelled(NamedTuple):
    """A document and the side of the split it is on."""

    text: str
    heldout: bool


class Split(NamedTuple):
    """The rule that says which text is held out.

    Attributes:
        fraction: share of the text to hold out.
        grain: what stays together: ``source 1`` (the widest), ``source 2``, ..., ``document`` or ``part``.
        names: sources that are held out; empty for the last two, which a hash decides.
        salt: hashed before a text, so that two splits of one text are independent.
        part_characters: at least this many in a part.
    """

    fraction: float
    grain: str
    names: frozenset[tuple[str, ...]] = frozenset()
    salt: str = ""
    part_characters: int = PART_CHARACTERS

    def sides(self, sources: tuple[str, ...], text: str) -> Iterator[Labelled]:
        """Yield a document with its side; where parts are split, its runs of neighbouring parts on one side."""
        if self.grain == "document":
            yield Labelled(text, is_heldout(text, self.fraction, self.salt))
        elif self.grain == "part":
            parts_of = cut(text, self.part_characters)
            for heldout, parts in groupby(parts_of, lambda part: is_heldout(part, self.fraction, self.salt)):
                yield Labelled("".join(parts).strip(), heldout)
        else:
            yield Labelled(text, sources[: int(self.grain.split()[1])] in self.names)

    def described(self) -> dict[str, Any]:
        """Return the rule for a manifest, JSON-able."""
        shorter = self.part_characters != PART_CHARACTERS
        return {
            "grain": self.grain,
            "sources": sorted("/".join(name) for name in self.names),
            **({"part_characters": self.part_characters} if shorter else {}),
        }

    def heldout_characters(self, documents: Iterable[Sourced]) -> int:
        """Return how much of the documents is on the held-out side."""
        return sum(len(side.text) for sources, text in documents for side in self.sides(sources, text) if side.heldout)


def choose_split(documents: Iterable[Sourced], fraction: float, salt: str = "", *, by_source: bool = True) -> Split:
    """Return the coarsest split that comes near the wanted share.

    Sources are taken in the order of their hashes, those that do not fit any more left out, until the share is
    reached: the held-out text hardly changes when a source is added. If one source holds all of the text, its own
    sources are split instead, then documents, and at last parts of long documents.

    Args:
        fraction: share of characters to hold out, between 0 and 1. salt: of the hashes of texts, and of names.
        by_source: False splits documents, whatever they come from.
    """
    sizes: Counter[tuple[str, ...]] = Counter()
    total = by_document = 0
    depth = None if by_source else 0
    small: list[Sourced] = []
    for sources, text in documents:
        total += len(text)
        if total <= MOST_CHARACTERS:
            small.append((sources, text))
        by_document += len(text) if is_heldout(text, fraction, salt) else 0
        # Documents without a source beside others with one: no level of sources covers all of the text.
        depth = len(sources) if depth is None else min(depth, len(sources))
        sizes.update({sources[: level + 1]: len(text) for level in range(len(sources))})
    low, high = (bound * fraction * total for bound in NEAR)
    for level in range(1, (depth or 0) + 1):
        held, names = 0, []
        for name in sorted(
            (name for name in sizes if len(name) == level), key=lambda name: document_hash(salt + "/".join(name))
        ):
            if held + sizes[name] <= 1.1 * fraction * total:
                held += sizes[name]
                names.append(name)
        if held >= low:
            return Split(fraction, f"source {level}", frozenset(names), salt)
    if low <= by_document <= high:
        return Split(fraction, "document", salt=salt)
    return _by_parts(Split(fraction, "part", salt=salt), small if total <= MOST_CHARACTERS else [], low, high)


def _by_parts(split: Split, documents: list[Sourced], low: float, high: float) -> Split:
    """Shorten the parts where nothing of a small text would be held out; every other split stays as it is."""
    if not documents or split.heldout_characters(documents):
        return split
    found = [(shorter, shorter.heldout_characters(documents))
             for shorter in (split._replace(part_characters=size) for size in SHORTER_PARTS)]  # fmt: skip
    some = [(shorter, held) for shorter, held in found if held]
    near = [shorter for shorter, held in some if low <= held <= high]
    # Of none that is near, what leaves most to training.
    return near[0] if near else min(some, key=lambda each: each[1])[0] if some else split


def document_hash(text: str) -> int:
    """Hash of a document's text (8 bytes of BLAKE2b as one integer), the same on every machine and in every process."""
    # Not hash(), which Python salts anew in every process. surrogatepass: broken text must land on one side as well.
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def is_heldout(text: str, fraction: float, salt: str = "") -> bool:
    """Return whether a document is held out where documents are split.

    A function of its text alone: documents added or moved elsewhere never change sides, equal documents are on one
    side, and a larger fraction keeps what a smaller one held out.

    Args:
        fraction: share of documents to hold out, between 0 and 1. salt: hashed before the text.

    Example:
        >>> sum(is_heldout(f"document {i}", 0.05) for i in range(10_000))
        530
    """
    return document_hash(salt + text) < fraction * 2.0**64
