"""The cleaning rules of C4: lines that are no sentences go, and documents in which too little is left."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal

from workbench.choices.choice import knob
from workbench.choices.data.steps.step import Document, Step, Verdict, kept, removed

ENDS = (".", "?", "!", '"', "\u201d")
POLICIES = ("terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies", "use cookies")
_CITATION = re.compile(r"\[\d*\]|\[edit\]|\[citation needed\]")
_SENTENCE_END = re.compile(r"[.!?]+[\"'\u201d\u2019)\]]*(?=\s|\Z)")


class C4Rules(Step):
    """Leaves out lines that are no sentence, scripts and notices about cookies; removes pages of code and filler.

    Source: Raffel et al. 2020 (arXiv 1910.10683), section 2.2, and the program that made C4 (TensorFlow Datasets).
    """

    kind: Literal["c4_rules"] = "c4_rules"
    sentence_lines: bool = knob(True, "leave out lines that do not end with . ? ! or a quotation mark, or end with ...")
    fewest_line_words: int | None = knob(5, "leave out lines of fewer words; empty: none", unit="words", ge=1)
    longest_word: int | None = knob(1000, "leave out lines with a longer word; empty: none", unit="characters", ge=1)
    javascript: bool = knob(True, "leave out lines that speak of Javascript")
    policies: bool = knob(True, "leave out lines about cookies, privacy and terms of use")
    citations: bool = knob(True, "leave out marks such as [1], [edit] and [citation needed]")
    filler: bool = knob(True, "remove documents with lorem ipsum")
    braces: bool = knob(True, "remove documents with a curly bracket: code")
    fewest_sentences: int | None = knob(3, "remove documents with fewer sentences left; empty: none", ge=1)

    def judge(self, documents: Iterable[Document]) -> Iterator[Verdict]:
        """Yield the verdicts, each from the document alone."""
        return map(self._verdict, documents)

    def _verdict(self, document: Document) -> Verdict:
        text = document.text
        if self.filler and "lorem ipsum" in text.lower():
            return removed(document, "lorem ipsum")
        if self.braces and "{" in text:
            return removed(document, "curly bracket")
        changes: Counter[str] = Counter()
        if self.citations:
            text, changes["citation mark"] = _CITATION.subn("", text)
        lines = []
        for line in text.split("\n"):
            # Blank lines stay: they separate paragraphs.
            why = self._why_not(line.strip()) if line.strip() else ""
            changes[why] += 1
            if not why:
                lines.append(line)
        del changes[""]
        changes = +changes
        text = "\n".join(lines).strip()
        if not text:
            return removed(document, "no line left", ", ".join(f"{why} {count}" for why, count in changes.items()))
        if self.fewest_sentences is not None and (found := sentences(text)) < self.fewest_sentences:
            return removed(document, "too few sentences", f"{found} < {self.fewest_sentences}")
        return Verdict(document, text, changes=changes) if changes else kept(document)

    def _why_not(self, line: str) -> str:
        """Return why a line is left out; empty if it stays."""
        words, lowered = line.split(), line.lower()
        if self.longest_word is not None and any(len(word) > self.longest_word for word in words):
            return "long word"
        if self.sentence_lines and (not line.endswith(ENDS) or line.endswith("...")):
            return "no sentence"
        if self.fewest_line_words is not None and len(words) < self.fewest_line_words:
            return "short line"
        if self.javascript and "javascript" in lowered:
            return "Javascript"
        if self.policies and any(policy in lowered for policy in POLICIES):
            return "policy"
        return ""


def sentences(text: str) -> int:
    """Return how many sentences a text has: their ends are counted, and a rest without one.

    Example:
        >>> sentences('He said: "Go!" Then 3.5 hours passed. So what')
        3
    """
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    rest = text[ends[-1] if ends else 0 :].strip()
    return len(ends) + bool(rest)
