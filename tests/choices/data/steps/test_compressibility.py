"""Tokens and bytes per character, one text at a time."""

from __future__ import annotations

import os
import random
import zlib
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from tests.choices.data.steps.judged import judged
from workbench.choices.data.steps import Compressibility, compressibility
from workbench.choices.data.tokenizers.trained import TrainedTokenizer

SMALL = {"kind": "trained", "vocabulary_size": 300}


def noise(count: int) -> list[str]:
    draw = random.Random(0)
    return ["".join(draw.choices("0123456789#%/.", k=300)) for _ in range(count)]


def test_documents_of_many_tokens_go(sentences, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [*sentences(60), *noise(5)]
    step = Compressibility(tokenizer=SMALL, most_tokens=0.4)
    TrainedTokenizer(vocabulary_size=300).make(iter(texts), tmp_path / "tokenizer.json")
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    shares = [len(tokenizer.encode(text, add_special_tokens=False).ids) / len(text) for text in texts]
    for share, verdict in zip(shares, judged(step, texts), strict=True):
        assert verdict.removed == ("many tokens" if share > 0.4 else "")
    assert 5 <= sum(share > 0.4 for share in shares) < 20
    # Documents are encoded in batches and in pieces, however long they are.
    monkeypatch.setattr(compressibility, "BATCH_CHARACTERS", 200)
    whole = " ".join(texts[:60])
    (counted,) = compressibility.token_counts(tokenizer, [whole])
    assert counted == len(tokenizer.encode(whole, add_special_tokens=False).ids)


def test_bounds_of_zlib(sentences) -> None:
    texts = ["again and again " * 40, sentences(1)[0] * 1, os.urandom(200).hex(), "漢字" * 100]
    step = Compressibility(most_tokens=None, least_zlib=0.2, most_zlib=0.7)
    for text, verdict in zip(texts, judged(step, texts), strict=True):
        share = len(zlib.compress(text.encode())) / len(text.encode())
        assert verdict.removed == ("repeats itself" if share < 0.2 else "noise" if share > 0.7 else "")
    assert judged(step, texts)[0].removed == judged(step, texts)[3].removed == "repeats itself"


def test_the_tokenizer_decides_the_key_only_where_tokens_count() -> None:
    one, other = Compressibility(), Compressibility(tokenizer=SMALL)
    assert one.key() != other.key()
    off = [each.model_copy(update={"most_tokens": None}).key() for each in (one, other)]
    assert off[0] == off[1]
