"""Documents that are expensive to come by (harvested, fetched), kept as JSON lines in a cache entry."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from workbench.choices.data.cache import cache_entry, key_of
from workbench.choices.data.data import Say, Sourced

DOCUMENTS_FILE = "documents.jsonl"
FORMAT_VERSION = 2
"""Part of the cache key: raise it whenever the file is written in another way."""


def cached_documents(area: str, made_from: Any, make: Callable[[], Iterator[Sourced]], say: Say) -> Iterator[Sourced]:
    """The documents and their sources that ``make`` gives, made once and then read from the cache.

    Args:
        made_from: everything that decides the documents (JSON-able): the key.

    Returns:
        the documents, streamed (memory holds the bytes of one), in the order in which ``make`` gave them, all of which
        are made before this returns.

    Raises:
        DataError: from ``make``, or the cache cannot be written.
    """

    def build(folder: Path) -> dict[str, Any]:
        count = words = 0
        with (folder / DOCUMENTS_FILE).open("w", encoding="utf-8") as file:
            for sources, text in make():
                # Escaped, so that half a surrogate pair from somebody's source cannot make the file unreadable.
                file.write(json.dumps([*sources, text]) + "\n")
                count += 1
                words += len(text.split())
        say(f"{count:,} documents with {words:,} words collected")
        return {"made_from": made_from, "documents": count, "words": words}

    folder, _ = cache_entry(area, key_of({"format": FORMAT_VERSION, "made_from": made_from}), build, say)
    return _read(folder / DOCUMENTS_FILE)


def _read(path: Path) -> Iterator[Sourced]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            *sources, text = json.loads(line)
            yield tuple(sources), text
