"""Characters as tokens: those of the training text, and what becomes of the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.choices.data.tokenizers.test_scripts import made
from workbench.base.errors import DataError, RecipeError
from workbench.choices.data.tokenizers import CharacterTokenizer
from workbench.choices.data.tokenizers.vocabulary import SPECIAL_TOKENS
from workbench.recipes.recipe import Recipe


def test_characters_are_those_of_the_text_and_the_rest_is_split_or_unknown(tmp_path: Path) -> None:
    documents = ["abba cab\n"] * 3
    split = made(CharacterTokenizer(), tmp_path, documents)
    assert split.encode("cab é", add_special_tokens=False).tokens == ["c", "a", "b", " ", "<0xC3>", "<0xA9>"]
    unknown = made(CharacterTokenizer(rest="unknown", vocabulary_size=64), tmp_path, documents)
    assert unknown.get_vocab_size() == len(SPECIAL_TOKENS) + len(set(documents[0]))
    assert unknown.encode("cab é", add_special_tokens=False).tokens == ["c", "a", "b", " ", "[UNK]"]
    many = [chr(0x4E00 + i % 300) for i in range(900)]
    assert made(CharacterTokenizer(rest="unknown", vocabulary_size=64), tmp_path, many).get_vocab_size() == 64
    with pytest.raises(DataError, match="no training document"):
        made(CharacterTokenizer(), tmp_path, [])
    with pytest.raises(RecipeError, match=r"300 is too small: 256 bytes .*use at least 320"):
        Recipe(data={"kind": "embedded", "tokenizer": {"kind": "characters", "vocabulary_size": 300}})
