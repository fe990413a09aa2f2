"""Removal of documents, or of lines and paragraphs, whose text was seen before."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Literal

from workbench.choices.choice import knob
from workbench.choices.data.steps.step import Document, Step, Verdict, kept, removed

_SPLITS = {"paragraph": re.compile(r"(\n\s*\n)"), "line": re.compile(r"(\n)")}


class ExactDuplicates(Step):
    """Keeps the first of equal documents, or of equal lines or paragraphs, after their text is normalised.

    Source: lines: Raffel et al. 2020 (arXiv 1910.10683), section 2.2; documents: Lee et al. 2022 (arXiv 2107.06499).
    """

    kind: Literal["exact_duplicates"] = "exact_duplicates"
    by: Literal["document", "paragraph", "line"] = knob(
        "document", "what is compared, and removed where it is repeated"
    )
    ignore_whitespace: bool = knob(True, "runs of white space count as one space")
    ignore_case: bool = knob(True, "capital and small letters are equal")
    shortest: int = knob(
        1, "shorter lines or paragraphs may be repeated: headings, separators", unit="characters", ge=1, le=1 << 20
    )

    def judge(self, documents: Iterable[Document]) -> Iterator[Verdict]:
        """Yield the verdicts; memory holds 16 bytes of hash, in a Python set, for each different text."""
        seen: dict[bytes, int] = {}
        for document in documents:
            yield self._whole(document, seen) if self.by == "document" else self._parts(document, seen)

    def _whole(self, document: Document, seen: dict[bytes, int]) -> Verdict:
        first = seen.setdefault(self._hash(document.text), document.number)
        return kept(document) if first == document.number else removed(document, "repeated", f"of document {first}")

    def _parts(self, document: Document, seen: dict[bytes, int]) -> Verdict:
        # Parts at even places, what separates them at odd ones.
        pieces = _SPLITS[self.by].split(document.text)
        repeated, text = 0, ""
        for part, behind in zip(pieces[::2], [*pieces[1::2], ""], strict=True):
            if len(part.strip()) >= self.shortest:
                key = self._hash(part)
                if key in seen:
                    repeated += 1
                    continue
                seen[key] = document.number
            text += part + behind
        if not repeated:
            return kept(document)
        if not text.strip():
            return removed(document, f"every {self.by} repeated", f"{repeated} of them")
        return Verdict(document, text.rstrip(), changes={f"repeated {self.by}": repeated})

    def normalised(self, text: str) -> bytes:
        """Return the bytes of a text that are compared."""
        if self.ignore_whitespace:
            text = " ".join(text.split())
        if self.ignore_case:
            text = text.casefold()
        return text.encode("utf-8", "surrogatepass")

    def _hash(self, text: str) -> bytes:
        # 16 bytes: among a billion texts two different ones are equal with a chance of 1e-21.
        return blake2b(self.normalised(text), digest_size=16).digest()
