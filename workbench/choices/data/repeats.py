"""Held-out text that repeats the training text: found by its runs of 13 words, and left out of the held-out side.

The held-out side loses them, because the user chose the training text, and so that memory grows with the small side
alone. (ASCII) case and punctuation are ignored; a character of a script written without spaces counts as a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from workbench.choices.data.cutting import batched, cut

# Shape legend: C bytes of texts, W words, G runs of words.

RUN_WORDS = 13
"""As the contamination studies of large models count (Brown et al. 2020, arXiv 2005.14165, appendix C)."""
PARAGRAPH_CHARACTERS = 1000
"""Paragraphs of at least twice this are cut at sentences, so that one shared run does not remove a chapter."""
MOST_RUNS = 1 << 24
"""Most runs kept (128 MiB); of more, a sample by hash, which long repetitions cannot escape."""
SCATTERED_SHARE = 0.5
"""Above this share of repeated runs, repetition is the nature of the text: nothing is removed."""
BATCH_CHARACTERS = 1 << 20

_WORD_BYTES = 24
_FIRST_WIDE = 0xE3  # lead byte of U+3000: kana, Chinese characters, Hangul
_MULTIPLIER, _STEP = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x9E3779B97F4A7C15)
_IS_WORD = np.array([byte >= 128 or chr(byte).isalnum() for byte in range(256)])
_LOWER = np.array([byte + 32 if 65 <= byte <= 90 else byte for byte in range(256)], np.uint64)


class Runs(NamedTuple):
    """Runs of words of some texts.

    Attributes:
        hash_G: uint64, of each run. first_G: number of its first word.
        begin_W: place of each word in the bytes of the joined texts. text_G: number of the text that each run is of.
    """

    hash_G: np.ndarray
    first_G: np.ndarray
    begin_W: np.ndarray
    text_G: np.ndarray


def runs_of(texts: Iterable[str], words: int = RUN_WORDS) -> Runs:
    """Return every run of ``words`` words within one text; bytes are those of UTF-8."""
    encoded = [_encoded(text) for text in texts]
    content_C = np.frombuffer(b"".join(encoded), np.uint8)
    bounds = np.cumsum([0, *map(len, encoded)])
    word_C = _IS_WORD[content_C]
    wide_C = content_C >= _FIRST_WIDE
    begins_C = word_C & wide_C
    begins_C[1:] |= word_C[1:] & ~word_C[:-1]
    # No word goes on from one text into the next.
    first_bytes = bounds[:-1][bounds[:-1] < len(word_C)]
    begins_C[first_bytes] = word_C[first_bytes]
    begin_W = np.flatnonzero(begins_C)
    hash_W = _hash_words(content_C, word_C & ~begins_C, begin_W)
    text_W = np.searchsorted(bounds, begin_W, side="right")
    hash_G, first_G = rolled(hash_W, text_W, words)
    return Runs(mixed(hash_G), first_G, begin_W, text_W[first_G] - 1)


def rolled(hash_W: np.ndarray, text_W: np.ndarray, words: int = RUN_WORDS) -> tuple[np.ndarray, np.ndarray]:
    """Return the hash of every run within one text, uint64 (G,), and the number of its first word, int64 (G,).

    Args:
        hash_W: of each word, uint64. text_W: number of the text that it is of, rising.
    """
    count = max(0, len(hash_W) - words + 1)
    hash_G = np.zeros(count, np.uint64)
    for place in range(words if count else 0):
        hash_G = hash_G * _STEP + hash_W[place : place + count]
    first_G = np.flatnonzero(text_W[:count] == text_W[words - 1 :]) if count else np.empty(0, np.int64)
    return hash_G[first_G], first_G


def looked_up(hash_G: np.ndarray, runs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which hashes are among ``runs``, as their numbers, and their places there, both int64.

    Args:
        runs: sorted, uint64, at least one.
    """
    place_G = np.minimum(np.searchsorted(runs, hash_G), len(runs) - 1)
    (found,) = np.nonzero(runs[place_G] == hash_G)
    return found, place_G[found]


def _hash_words(content_C: np.ndarray, inside_C: np.ndarray, begin_W: np.ndarray) -> np.ndarray:
    """Hash of each word's first 24 bytes; ``inside_C`` marks the bytes of words but their first."""
    hash_W = _LOWER[content_C[begin_W]]
    open_W = np.arange(len(begin_W))
    for place in range(1, _WORD_BYTES):
        # Only words that continue: most are short.
        open_W = open_W[begin_W[open_W] + place < len(content_C)]
        open_W = open_W[inside_C[begin_W[open_W] + place]]
        hash_W[open_W] = hash_W[open_W] * _STEP + _LOWER[content_C[begin_W[open_W] + place]]
    return mixed(hash_W)


def mixed(x: np.ndarray) -> np.ndarray:
    """Hash numbers, uint64 of any shape: every bit reaches every bit (the multiplications of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * _MULTIPLIER
    return np.asarray((x ^ (x >> np.uint64(27))) * _STEP ^ (x >> np.uint64(31)))


class Repeats:
    """Find the runs of the held-out text that also occur in the training text."""

    def __init__(self, heldout: Iterable[str]) -> None:
        self._share = np.uint64(1)
        found = np.empty(0, np.uint64)
        for texts in batched(heldout, BATCH_CHARACTERS):
            hash_G = runs_of(texts).hash_G
            found = np.unique(np.concatenate([found, hash_G[hash_G % self._share == 0]]))
            while len(found) > MOST_RUNS:
                self._share *= np.uint64(2)
                found = found[found % self._share == 0]
        self._runs = found
        self._seen = np.zeros(len(found), bool)
        self.runs = self.repeated = self.shortened = 0

    def watch(self, training: Iterable[str]) -> Iterator[str]:
        """Yield the training documents, a batch at a time; their runs are looked up on the way."""
        for texts in batched(training, BATCH_CHARACTERS):
            if len(self._runs):
                self._seen[looked_up(runs_of(texts).hash_G, self._runs)[1]] = True
            yield from texts

    @property
    def share(self) -> float:
        """Share of the held-out text's different runs that were seen in training."""
        return float(self._seen.mean()) if len(self._seen) else 0.0

    def shares_run(self, text: str) -> bool:
        """Return True if a run of the text, one of the held-out texts, was seen in training."""
        return bool(self._is_repeated(runs_of([text]).hash_G).any())

    def without(self, text: str) -> str:
        """Return a held-out document without the paragraphs that share a run with the training text; may be empty.

        Counts the runs of the rest, :attr:`runs` and, of them, :attr:`repeated`; and in :attr:`shortened` the documents
        that lost something.
        """
        if 0 < self.share <= SCATTERED_SHARE:
            left = without_runs(text, self._runs[self._seen])
            self.shortened += left is not text
            text = left
        hash_G = runs_of([text]).hash_G
        sampled_G = hash_G[hash_G % self._share == 0]
        self.runs += len(sampled_G)
        self.repeated += int(self._is_repeated(sampled_G).sum())
        return text

    @property
    def overlap(self) -> float:
        """Share of the runs in the output of :meth:`without` that also occur in the training text."""
        return self.repeated / self.runs if self.runs else 0.0

    def _is_repeated(self, hash_G: np.ndarray) -> np.ndarray:
        return np.isin(hash_G, self._runs[self._seen])


def without_runs(text: str, runs: np.ndarray) -> str:
    """Return a text without the paragraphs that hold a word of some runs; the text itself if it has none of them.

    Args:
        runs: hashes of runs of 13 words, uint64 of shape (G,).
    """
    found = runs_of([text])
    first_G = found.first_G[np.isin(found.hash_G, runs)]
    if not len(first_G):
        return text
    # +1 where a run begins, -1 behind its end: above 0 in between.
    change = np.zeros(len(found.begin_W) + 1, np.int64)
    np.add.at(change, first_G, 1)
    np.add.at(change, first_G + RUN_WORDS, -1)
    begins = found.begin_W[change[:-1].cumsum() > 0]
    pieces = list(_paragraphs(text))
    ends = np.cumsum([len(_encoded(piece)) for piece in pieces])
    gone = set(np.searchsorted(ends, begins, side="right").tolist())
    return "".join(piece for number, piece in enumerate(pieces) if number not in gone).strip()


def _paragraphs(text: str) -> Iterator[str]:
    """Yield paragraphs with their line ends: lines, or the text between blank lines if there are any."""
    pattern = r".*?(?:\n\s*\n|\Z)" if re.search(r"\n\s*\n", text) else r".*?(?:\n|\Z)"
    for paragraph in re.findall(pattern, text, re.DOTALL):
        yield from cut(paragraph, PARAGRAPH_CHARACTERS)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
