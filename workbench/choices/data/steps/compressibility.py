"""Removal of documents that compress badly into tokens, or too well or badly with zlib."""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from workbench.choices.choice import Problem, knob, one_of
from workbench.choices.data.cutting import batched, cut
from workbench.choices.data.steps.step import Document, Step, Verdict, kept, removed
from workbench.choices.data.tokenizers.tokenizer import TokenizerChoice
from workbench.choices.data.tokenizers.trained import TrainedTokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

BATCH_CHARACTERS = 1 << 21


class Compressibility(Step):
    """Removes documents that need many tokens for their characters: tables, code, numbers, other languages.

    Source: Geiping and Goldstein 2022, Cramming (arXiv 2212.14034), section 4.4: t = 0.3 tokens a character.
    """

    kind: Literal["compressibility"] = "compressibility"
    most_tokens: float | None = knob(0.3, "most tokens per character; empty: any", gt=0, le=16)
    tokenizer: one_of(TokenizerChoice) = knob(  # type: ignore[valid-type]
        help="by which tokens are counted; trained: on these documents", default_factory=TrainedTokenizer
    )
    least_zlib: float | None = knob(
        None, "least bytes after zlib per byte: less is text that repeats itself; empty: any", ge=0, le=1
    )
    most_zlib: float | None = knob(None, "most bytes after zlib per byte: more is noise; empty: any", gt=0, le=2)

    def judge(self, documents: Iterable[Document]) -> Iterator[Verdict]:
        """Yield the verdicts; where tokens count, a first pass may train the tokenizer."""
        tokenizer = self._tokenizer(documents) if self.most_tokens is not None else None
        for batch in batched(documents, BATCH_CHARACTERS, size=lambda document: len(document.text)):
            counts = token_counts(tokenizer, [document.text for document in batch]) if tokenizer else [0] * len(batch)
            for document, tokens in zip(batch, counts, strict=True):
                yield self._verdict(document, tokens / max(1, len(document.text)))

    def key(self) -> dict[str, Any]:
        """Return the knobs, and what decides the tokenizer."""
        tokenizer = self.tokenizer.key({}) if self.most_tokens is not None else {}
        return {**super().key(), "tokenizer": tokenizer}

    def problems_here(self) -> Iterator[Problem]:
        """Yield what the tokenizer lacks."""
        if self.most_tokens is not None:
            for path, message in self.tokenizer.problems_here():
                yield Problem(f"tokenizer.{path}", message)

    def _verdict(self, document: Document, tokens: float) -> Verdict:
        if self.most_tokens is not None and tokens > self.most_tokens:
            return removed(document, "many tokens", f"{tokens:.3g} a character > {self.most_tokens:g}")
        if self.least_zlib is None and self.most_zlib is None:
            return kept(document)
        share = zlib_share(document.text)
        if self.least_zlib is not None and share < self.least_zlib:
            return removed(document, "repeats itself", f"{share:.3g} of its bytes after zlib < {self.least_zlib:g}")
        if self.most_zlib is not None and share > self.most_zlib:
            return removed(document, "noise", f"{share:.3g} of its bytes after zlib > {self.most_zlib:g}")
        return kept(document)

    def _tokenizer(self, documents: Iterable[Document]) -> Tokenizer:
        from tokenizers import Tokenizer

        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / "tokenizer.json"
            self.tokenizer.make((document.text for document in documents), target)
            return Tokenizer.from_file(str(target))


def zlib_share(text: str) -> float:
    """Return the bytes of a text after zlib (level 6) per byte of its UTF-8."""
    content = text.encode("utf-8", "surrogatepass")
    return len(zlib.compress(content)) / max(1, len(content))


def token_counts(tokenizer: Tokenizer, texts: list[str]) -> list[int]:
    """Return the number of tokens of each text, special ones left out; long texts are encoded in pieces."""
    pieces = [(number, piece) for number, text in enumerate(texts) for piece in cut(text, BATCH_CHARACTERS // 2)]
    encodings = tokenizer.encode_batch_fast([piece for _, piece in pieces], add_special_tokens=False)
    counts = [0] * len(texts)
    for (number, _), encoding in zip(pieces, encodings, strict=True):
        counts[number] += len(encoding.ids)
    return counts
