"""What a tokenizer choice is: a ``tokenizers.Tokenizer`` made from a name, a path or the corpus itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from workbench.choices.choice import Choice


class TokenizerChoice(Choice):
    """Base of the tokenizers."""

    axis: ClassVar[str] = "tokenizer"

    def key(self, sources: dict[str, Any]) -> dict[str, Any]:
        """What decides the tokenizer, for the cache key; a trained one depends on the corpus, a given one does not."""
        raise NotImplementedError

    def make(self, documents: Iterator[str], target: Path) -> None:
        """Write ``tokenizer.json`` at ``target``, with [PAD] [UNK] [CLS] [SEP] [MASK] (or its own such tokens).

        Raises:
            DataError: the named tokenizer cannot be had, or the corpus is too small for the vocabulary.
        """
        raise NotImplementedError
