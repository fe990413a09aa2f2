"""Bytes of UTF-8 as tokens; nothing is learned."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from workbench.choices.data.tokenizers.tokenizer import TokenizerChoice
from workbench.choices.data.tokenizers.vocabulary import SPECIAL_TOKENS, frame_documents


class ByteTokenizer(TokenizerChoice):
    """The 256 bytes and the special tokens: 261 ids, for any text in any script."""

    kind: Literal["bytes"] = "bytes"

    def key(self, sources: dict[str, Any]) -> dict[str, Any]:
        """Return its name: the corpus plays no part."""
        return self.model_dump(mode="json")

    def asked_size(self) -> int:
        """Return its 261 ids."""
        return len(SPECIAL_TOKENS) + 256

    def make(self, documents: Iterator[str], target: Path) -> dict[str, str]:
        """Write ``tokenizer.json``: byte-level pair encoding without a pair. Byte b has the id b + 5."""
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers

        # As GPT-2 writes bytes: printable ones as they are, the others as the letters from U+0100 on, in order.
        letters = pre_tokenizers.ByteLevel.alphabet()
        others = iter(sorted(letter for letter in letters if ord(letter) > 255))
        names = [chr(byte) if chr(byte) in letters else next(others) for byte in range(256)]
        vocabulary = {name: number for number, name in enumerate([*SPECIAL_TOKENS, *names])}
        tokenizer = Tokenizer(models.BPE(vocabulary, []))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
        frame_documents(tokenizer)
        target.write_text(tokenizer.to_str(), encoding="utf-8")
        return {}
