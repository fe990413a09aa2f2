"""The quality and repetition rules of Gopher's data: removal of what is no running text, or repeats itself."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Literal

from workbench.choices.choice import knob
from workbench.choices.data.steps.step import Document, Step, Verdict, kept, removed

STOP_WORDS = frozenset({"the", "be", "to", "of", "and", "that", "have", "with"})
BULLETS = ("•", "-")
ELLIPSES = ("...", "…")
SHORTEST_GRAM, SHORTEST_REPEATED = 2, 5
_AT_LEAST, _AT_MOST = (operator.lt, "<"), (operator.gt, ">")


class GopherRules(Step):
    """Removes documents with too few words or stop words, too many symbols or lists, or repeated lines and phrases.

    Source: Rae et al. 2021 (arXiv 2112.11446), appendix A.1.1: quality, and table A1: repetition.
    """

    kind: Literal["gopher_rules"] = "gopher_rules"
    fewest_words: int | None = knob(50, "least words; empty: any", unit="words", ge=0)
    most_words: int | None = knob(100_000, "most words; empty: any", unit="words", ge=1)
    shortest_mean_word: float | None = knob(3.0, "least mean length of a word; empty: any", unit="characters", ge=0)
    longest_mean_word: float | None = knob(10.0, "largest mean length of a word; empty: any", unit="characters", gt=0)
    most_hashes: float | None = knob(0.1, "most # per word; empty: any", ge=0)
    most_ellipses: float | None = knob(0.1, "most ellipses per word; empty: any", ge=0)
    most_bullet_lines: float | None = knob(0.9, "most lines that begin with a bullet, a share; empty: any", ge=0, le=1)
    most_ellipsis_lines: float | None = knob(
        0.3, "most lines that end with an ellipsis, a share; empty: any", ge=0, le=1
    )
    fewest_letter_words: float | None = knob(0.8, "least share of words with a letter; empty: any", ge=0, le=1)
    fewest_stop_words: int | None = knob(
        2, "different ones at least of the, be, to, of, and, that, have, with; empty: any (other languages)", ge=0, le=8
    )
    most_repeated_lines: float | None = knob(0.3, "most lines seen before, a share; empty: any", ge=0, le=1)
    most_repeated_paragraphs: float | None = knob(0.3, "most paragraphs seen before, a share; empty: any", ge=0, le=1)
    most_in_repeated_lines: float | None = knob(
        0.2, "largest share of characters in lines seen before; empty: any", ge=0, le=1
    )
    most_in_repeated_paragraphs: float | None = knob(
        0.2, "largest share of characters in paragraphs seen before; empty: any", ge=0, le=1
    )
    most_in_top_phrases: tuple[float, ...] = knob(
        (0.2, 0.18, 0.16), "largest share of characters in the commonest phrase of 2, 3, ... words; empty: any"
    )
    most_in_repeated_phrases: tuple[float, ...] = knob(
        (0.15, 0.14, 0.13, 0.12, 0.11, 0.1),
        "largest share of characters in phrases of 5, 6, ... words that were seen before; empty: any",
    )

    def judge(self, documents: Iterable[Document]) -> Iterator[Verdict]:
        """Yield the verdicts, each from the document alone; the first broken rule is the reason."""
        for document in documents:
            broken = next(self.broken(document.text), None)
            yield removed(document, *broken) if broken else kept(document)

    def broken(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield each broken rule, and the numbers that break it."""
        facts = _Facts(text)
        for knob_name, (measure, (breaks, sign)) in _RULES.items():
            limit = getattr(self, knob_name)
            if limit is not None and breaks(value := getattr(facts, measure), limit):
                yield measure.replace("_", " "), f"{value:.3g} {sign} {limit:g}"
        for words, most in enumerate(self.most_in_top_phrases, SHORTEST_GRAM):
            if (share := facts.in_top_phrase(words)) > most:
                yield f"in the commonest {words} words", f"{share:.3g} > {most:g}"
        for words, most in enumerate(self.most_in_repeated_phrases, SHORTEST_REPEATED):
            if not (share := facts.in_repeated_phrases(words)):
                # No run of five words twice, no longer one either.
                return
            if share > most:
                yield f"in repeated {words} words", f"{share:.3g} > {most:g}"


_RULES = {
    "fewest_words": ("words", _AT_LEAST),
    "most_words": ("words", _AT_MOST),
    "shortest_mean_word": ("mean_word_length", _AT_LEAST),
    "longest_mean_word": ("mean_word_length", _AT_MOST),
    "most_hashes": ("hashes_per_word", _AT_MOST),
    "most_ellipses": ("ellipses_per_word", _AT_MOST),
    "most_bullet_lines": ("bullet_lines", _AT_MOST),
    "most_ellipsis_lines": ("ellipsis_lines", _AT_MOST),
    "fewest_letter_words": ("words_with_a_letter", _AT_LEAST),
    "fewest_stop_words": ("stop_words", _AT_LEAST),
    "most_repeated_lines": ("repeated_lines", _AT_MOST),
    "most_repeated_paragraphs": ("repeated_paragraphs", _AT_MOST),
    "most_in_repeated_lines": ("in_repeated_lines", _AT_MOST),
    "most_in_repeated_paragraphs": ("in_repeated_paragraphs", _AT_MOST),
}
"""Knob -> (what is measured, when that breaks the rule)."""


class _Facts:
    """Measures of one document, made as they are asked for; words are what white space separates."""

    def __init__(self, text: str) -> None:
        self._text, self._words = text, text.split()
        self.words = len(self._words)

    @cached_property
    def _lines(self) -> list[str]:
        return [line for line in map(str.strip, self._text.split("\n")) if line]

    @cached_property
    def _paragraphs(self) -> list[str]:
        return [part for part in map(str.strip, self._text.split("\n\n")) if part]

    @property
    def mean_word_length(self) -> float:
        return sum(map(len, self._words)) / max(1, self.words)

    @property
    def hashes_per_word(self) -> float:
        return self._text.count("#") / max(1, self.words)

    @property
    def ellipses_per_word(self) -> float:
        return sum(map(self._text.count, ELLIPSES)) / max(1, self.words)

    @property
    def bullet_lines(self) -> float:
        return _share(line.startswith(BULLETS) for line in self._lines)

    @property
    def ellipsis_lines(self) -> float:
        return _share(line.endswith(ELLIPSES) for line in self._lines)

    @property
    def words_with_a_letter(self) -> float:
        return _share(any(map(str.isalpha, word)) for word in self._words)

    @property
    def stop_words(self) -> int:
        return len(STOP_WORDS.intersection(word.lower() for word in self._words))

    @property
    def repeated_lines(self) -> float:
        return 1 - len(set(self._lines)) / max(1, len(self._lines)) if self._lines else 0.0

    @property
    def repeated_paragraphs(self) -> float:
        return 1 - len(set(self._paragraphs)) / max(1, len(self._paragraphs)) if self._paragraphs else 0.0

    @property
    def in_repeated_lines(self) -> float:
        return self._in_repeated(self._lines)

    @property
    def in_repeated_paragraphs(self) -> float:
        return self._in_repeated(self._paragraphs)

    def _in_repeated(self, parts: Sequence[str]) -> float:
        return (sum(map(len, parts)) - sum(map(len, set(parts)))) / max(1, len(self._text))

    def in_top_phrase(self, words: int) -> float:
        """Return the share of characters in the commonest phrase of so many words; 0 where none occurs twice."""
        counts = Counter(self._phrases(words))
        most = max(counts.values(), default=0)
        if most < 2:
            return 0.0
        longest = max(sum(map(len, phrase)) for phrase, count in counts.items() if count == most)
        # Its occurrences may overlap.
        return min(1.0, most * (longest + words - 1) / max(1, len(self._text)))

    def in_repeated_phrases(self, words: int) -> float:
        """Return the share of characters in phrases of so many words that were seen before, none counted twice."""
        phrases = list(self._phrases(words))
        if len(set(phrases)) == len(phrases):
            return 0.0
        counts = Counter(phrases)
        seen: set[tuple[str, ...]] = set()
        repeated = behind = 0
        for place, phrase in enumerate(phrases):
            # One that occurs once changes nothing: most do.
            if counts[phrase] == 1 or place < behind:
                continue
            if phrase in seen:
                repeated += sum(map(len, phrase)) + words - 1
                behind = place + words
            seen.add(phrase)
        return repeated / max(1, len(self._text))

    def _phrases(self, words: int) -> Iterator[tuple[str, ...]]:
        return zip(*(islice(self._words, start, None) for start in range(words)), strict=False)


def _share(flags: Iterable[bool]) -> float:
    found = list(flags)
    return sum(found) / max(1, len(found))
