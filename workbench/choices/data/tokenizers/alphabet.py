"""The commonest characters of a text: the alphabet of a vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

COVERED_SHARE = 0.9999


def commonest(counts: Counter[str], most: int, share: float = 1.0) -> list[str]:
    """Return the commonest characters, in the order of their code points; ties go to the lowest.

    Args:
        counts: occurrences of each character.
        most: characters returned, at most.
        share: of the text that suffices. Of a large text, a thousand letters of other scripts, each seen now and then,
            would take their ids from whole words.

    Example:
        >>> commonest(Counter("banana band"), 3)
        ['a', 'b', 'n']
    """
    ranked = sorted(counts, key=lambda c: (-counts[c], c))
    missing = sum(counts.values())
    enough = missing * (1 - share)
    kept = []
    for letter in ranked[:most]:
        if missing <= enough:
            break
        kept.append(letter)
        missing -= counts[letter]
    return sorted(kept)


def counted(texts: Iterable[str], keep: Callable[[str], bool] = lambda letter: True) -> Counter[str]:
    """Return how often each character occurs in some texts, without those that ``keep`` refuses."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text)
    return Counter({letter: count for letter, count in counts.items() if keep(letter)})


def byte_names() -> Sequence[str]:
    """Return the names of the 256 bytes as SentencePiece writes them, in order.

    Example:
        >>> byte_names()[10]
        '<0x0A>'
    """
    return [f"<0x{value:02X}>" for value in range(256)]
