"""Bytes as tokens: numbered in order."""

from __future__ import annotations

from pathlib import Path

from tests.choices.data.tokenizers.test_scripts import made
from workbench.choices.data.tokenizers import ByteTokenizer
from workbench.choices.data.tokenizers.vocabulary import vocabulary_of


def test_bytes_are_numbered_in_order(tmp_path: Path) -> None:
    tokenizer = made(ByteTokenizer(), tmp_path, [])
    text = "A é 好"
    assert tokenizer.encode(text, add_special_tokens=False).ids == [5 + byte for byte in text.encode()]
    assert all(tokenizer.decode([5 + byte]) == chr(byte) for byte in range(128))
    assert vocabulary_of(tokenizer, ByteTokenizer().asked_size()).size == 320
