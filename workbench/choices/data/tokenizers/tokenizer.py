"""Base of the tokenizer choices: a ``tokenizers.Tokenizer`` made from a name, a path or the corpus itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from workbench.choices.choice import Choice, Problem


class TokenizerChoice(Choice):
    """Base of the tokenizers."""

    axis: ClassVar[str] = "tokenizer"
    doing: ClassVar[str] = "getting the tokenizer"
    """The work of :meth:`make` in words, for those who wait for it."""

    def key(self, sources: dict[str, Any]) -> dict[str, Any]:
        """Return what decides the tokenizer, for the cache key: the corpus too, if it is trained.

        Raises:
            DataError: the named tokenizer does not exist.
        """
        raise NotImplementedError

    def problems_here(self) -> Iterator[Problem]:
        """Yield, at once, what this machine lacks and cannot fetch; paths are those of its own knobs."""
        yield from ()

    def notices(self) -> Iterator[Problem]:
        """Yield what is said about it before training, by knob."""
        yield from ()

    def asked_size(self) -> int:
        """Return ids the recipe asks for at least (0: as many as the tokenizer has)."""
        return 0

    def make(self, documents: Iterator[str], target: Path) -> dict[str, str]:
        """Write ``tokenizer.json`` at ``target``; preparation adds a start, end or mask token where there is none.

        Args:
            documents: the training documents, in order; read only by tokenizers that learn from them.
            target: the file to write; what it replaces, if anything, is lost.

        Returns:
            the special tokens that the tokenizer declares outside this file, by transformers' field (``bos_token``).

        Raises:
            DataError: the named tokenizer cannot be had, or the corpus is too small for the vocabulary.
        """
        raise NotImplementedError
