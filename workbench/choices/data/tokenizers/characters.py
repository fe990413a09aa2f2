"""Characters of the training text as tokens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import model_validator

from workbench.base.errors import DataError
from workbench.choices.choice import knob
from workbench.choices.data.tokenizers.alphabet import byte_names, commonest, counted
from workbench.choices.data.tokenizers.tokenizer import TokenizerChoice
from workbench.choices.data.tokenizers.vocabulary import SPECIAL_TOKENS, frame_documents

SMALLEST_WITH_BYTES = 320


class CharacterTokenizer(TokenizerChoice):
    """The commonest characters of the training text; any other is its UTF-8 bytes, or unknown."""

    doing: ClassVar[str] = "counting the characters"
    kind: Literal["characters"] = "characters"
    vocabulary_size: int = knob(
        512, "ids at most, special tokens and bytes included", unit="ids", ge=64, le=1 << 20, scale="log"
    )
    rest: Literal["bytes", "unknown"] = knob("bytes", "what a character without an id becomes: its bytes, or [UNK]")

    @model_validator(mode="after")
    def _room_for_characters(self) -> CharacterTokenizer:
        if self.rest == "bytes" and self.vocabulary_size < SMALLEST_WITH_BYTES:
            raise ValueError(
                f"vocabulary_size {self.vocabulary_size} is too small: 256 bytes and {len(SPECIAL_TOKENS)} special "
                f"tokens come first; use at least {SMALLEST_WITH_BYTES}, rest 'unknown', or the tokenizer 'bytes'"
            )
        return self

    def key(self, sources: dict[str, Any]) -> dict[str, Any]:
        """Return its knobs and the corpus."""
        return {**self.model_dump(mode="json"), "corpus": sources}

    def asked_size(self) -> int:
        """Return the vocabulary size asked for; a text of fewer characters fills less of it."""
        return self.vocabulary_size

    def make(self, documents: Iterator[str], target: Path) -> dict[str, str]:
        """Count the characters of all training documents and write ``tokenizer.json``.

        Raises:
            DataError: there is no training document.
        """
        from tokenizers import Tokenizer, decoders, models

        fixed = [*SPECIAL_TOKENS, *(byte_names() if self.rest == "bytes" else ())]
        counts = counted(documents)
        if not counts:
            raise DataError(
                "the corpus is empty: no training document has text to take characters from; check data.paths and "
                "data.field, if it has them, or lower data.heldout_fraction"
            )
        names = [*fixed, *commonest(counts, self.vocabulary_size - len(fixed))]
        vocabulary = {name: number for number, name in enumerate(names)}
        # Pair encoding without a pair: whatever it is given, it takes letter by letter.
        model = models.BPE(vocabulary, [], unk_token="[UNK]", byte_fallback=self.rest == "bytes")
        tokenizer = Tokenizer(model)
        tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
        tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
        frame_documents(tokenizer)
        target.write_text(tokenizer.to_str(), encoding="utf-8")
        return {}
