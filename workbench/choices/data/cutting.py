"""Cutting long texts where a reader would: at paragraphs, sentences, white space, and only then anywhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

Item = TypeVar("Item")

_BREAKS = (
    re.compile(r"(?=\n\s*\n)"),
    re.compile(r"(?=\n)"),
    # Scripts without spaces end a sentence with a mark of their own.
    re.compile(r"(?<=[.!?])(?=\s)|(?<=[\u3002\uff01\uff1f])"),
    re.compile(r"(?=\s)"),
)


def cut(text: str, characters: int) -> Iterator[str]:
    """Yield a text in pieces of ``characters`` to twice as many; joined they are the text again.

    Cuts stand before white space where there is any, so that no word is torn.

    Args:
        text: of any length; one of less than twice ``characters`` stays whole.
        characters: at least 1.

    Example:
        >>> list(cut("One two. Three four.", 8))
        ['One two.', ' Three four.']
    """
    begin = 0
    while len(text) - begin >= 2 * characters:
        low, high = begin + characters, begin + 2 * characters
        window = text[low - 1 : high]
        # From 1 on: the character before the window is there to be looked back at.
        found = (match for pattern in _BREAKS if (match := pattern.search(window, 1)))
        match = next(found, None)
        end = high if match is None else low - 1 + match.start()
        yield text[begin:end]
        begin = end
    yield text[begin:]


def batched(items: Iterable[Item], characters: int, size: Callable[[Any], int] = len) -> Iterator[list[Item]]:
    """Yield items in order, in lists that end when their sizes reach ``characters``; the last may be shorter."""
    batch: list[Item] = []
    total = 0
    for item in items:
        batch.append(item)
        total += size(item)
        if total >= characters:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch
