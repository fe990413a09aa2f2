"""Names of a vocabulary's tokens, and what they say of words and sentences."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

# Shape legend: V ids of a vocabulary.

_BEGIN_MARKS = ("\u0120", "\u2581", " ")
"""Before a word's first token: of byte-level vocabularies (a space), of SentencePiece's, of characters."""
_LINE_BREAKS = ("\u010a", "\u010d", "\n", "\r")
"""As byte-level vocabularies write them, and as they are."""
_SENTENCE_ENDS = (".", "!", "?", "\u3002", "\uff01", "\uff1f")


@dataclass(frozen=True, eq=False)
class Pieces:
    """Names of tokens by id, and the mark with which they say where a word begins.

    Attributes:
        names: text of each token, with marks; empty for an id without a token.
        mark: ``\u0120``, ``\u2581`` or a space before the first token of a word, or as that token (bytes, characters);
            any other text before those that continue one (``##``); empty where the vocabulary does not say.
    """

    names: tuple[str, ...]
    mark: str

    @classmethod
    def of(cls, tokenizer_file: str | Path) -> Pieces:
        """Read the names from a ``tokenizer.json``, once as long as the file stays as it is."""
        path = Path(tokenizer_file)
        return _read(path, path.stat().st_mtime_ns)

    def begins(self, size: int) -> np.ndarray:
        """Return whether each token begins a word, bool of shape (V,) with V = ``size``; all do without a mark."""
        begins_V = np.ones(size, bool)
        if self.mark in _BEGIN_MARKS:
            # A line break ends a word as a space does.
            starts = (self.mark, *_LINE_BREAKS)
            begins_V[: len(self.names)] = [name.startswith(starts) for name in self.names]
        elif self.mark:
            begins_V[: len(self.names)] = [not name.startswith(self.mark) for name in self.names]
        return begins_V

    def ends_sentence(self, size: int) -> np.ndarray:
        """Return whether each token ends a sentence, bool (V,): a full stop, ! or ?, or a break of line."""
        ends_V = np.zeros(size, bool)
        for token, name in enumerate(self.names):
            ends_V[token] = self.text(token).endswith(_SENTENCE_ENDS) or name.startswith(_LINE_BREAKS)
        return ends_V

    def text(self, token: int) -> str:
        """Return a token's text without its mark; its number where it has none."""
        name = self.names[token] if token < len(self.names) else ""
        return name.removeprefix(self.mark) or name or str(token)

    def continues(self, token: int) -> bool:
        """Return whether a token continues the word before it."""
        name = self.names[token] if token < len(self.names) else ""
        return bool(self.mark) and name.startswith(self.mark) != (self.mark in _BEGIN_MARKS)


@functools.lru_cache(maxsize=4)
def _read(path: Path, changed: int) -> Pieces:
    found = json.loads(path.read_text(encoding="utf-8"))
    model: dict[str, Any] = found["model"]
    vocabulary = model["vocab"]
    if isinstance(vocabulary, list):
        # Unigram: pairs of name and score, in the order of their ids.
        vocabulary = {name: token for token, (name, _) in enumerate(vocabulary)}
    names_of = {token: name for name, token in vocabulary.items()}
    names_of |= {each["id"]: each["content"] for each in found.get("added_tokens") or ()}
    names = tuple(names_of.get(token, "") for token in range(max(names_of, default=-1) + 1))
    prefix = model.get("continuing_subword_prefix") or ""
    # Where each token is one byte or character, the mark is a token of its own.
    counts = {mark: sum(name.startswith(mark) for name in names) for mark in _BEGIN_MARKS}
    counts[prefix] = sum(name.startswith(prefix) and name != prefix for name in names) if prefix else 0
    # A declared prefix is the mark, whatever else stands in the vocabulary; of the others the commonest one.
    mark = prefix if prefix and counts[prefix] else max(_BEGIN_MARKS, key=lambda each: counts[each])
    return Pieces(names, mark if counts[mark] else "")
