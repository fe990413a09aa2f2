"""Special tokens by any name."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer, models

from workbench.base.errors import DataError
from workbench.choices.data.tokenizers.vocabulary import complete, vocabulary_of


def tokenizer_of(*tokens: str) -> Tokenizer:
    return Tokenizer(models.WordLevel({token: i for i, token in enumerate(tokens)}, unk_token=tokens[-1]))


@pytest.mark.parametrize(
    ("tokens", "added", "parts"),
    [
        (("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"), [], (2, 3, 4, 0, 1)),
        (("<s>", "<pad>", "</s>", "<unk>", "a", "<mask>"), [], (0, 2, 5, 1, 3)),
        (("a", "<|endoftext|>"), ["[MASK]"], (1, 1, 2, 1, 1)),
        (("a", "b"), ["[CLS]", "[SEP]", "[MASK]"], (2, 3, 4, 3, 3)),
    ],
)
def test_parts(tokens, added, parts):
    tokenizer = tokenizer_of(*tokens)
    assert complete(tokenizer) == added
    assert complete(tokenizer) == []
    found = vocabulary_of(tokenizer)
    assert (found.cls, found.sep, found.mask, found.pad, found.unk) == parts
    assert found.used == len(tokens) + len(added)
    assert found.size == 64


def test_size():
    tokenizer = tokenizer_of(*(f"t{i}" for i in range(130)))
    complete(tokenizer)
    assert vocabulary_of(tokenizer).size == 192
    assert vocabulary_of(tokenizer, 1000).size == 1024


def test_gaps_in_the_ids_count():
    tokenizer = Tokenizer(models.WordLevel({"[CLS]": 0, "[SEP]": 1, "[MASK]": 500}, unk_token="[SEP]"))
    assert (vocabulary_of(tokenizer).used, vocabulary_of(tokenizer).size) == (501, 512)


def test_incomplete():
    with pytest.raises(DataError, match="no start, end or mask token; legal names are"):
        vocabulary_of(tokenizer_of("a"))
