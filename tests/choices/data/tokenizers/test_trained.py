"""Vocabularies learned from text: reproducible, padded, evenly sampled."""

from __future__ import annotations

import itertools
import json

import pytest
from tokenizers import Tokenizer

from workbench.base.errors import DataError, RecipeError
from workbench.choices.data.tokenizers.trained import TrainedTokenizer, spread_sample
from workbench.choices.data.tokenizers.vocabulary import SPECIAL_TOKENS, vocabulary_of
from workbench.recipes.recipe import Recipe


def made(tmp_path, documents, **knobs) -> Tokenizer:
    TrainedTokenizer(**knobs).make(iter(documents), tmp_path / "tokenizer.json")
    return Tokenizer.from_file(str(tmp_path / "tokenizer.json"))


@pytest.mark.parametrize("algorithm", ["wordpiece", "bpe", "unigram"])
def test_same_bytes_every_time(tmp_path, sentences, algorithm):
    # Letters that occur equally often and words with equal counts: every tie there is.
    documents = [*sentences(100), *(f"{chr(0x3B1 + i)}{chr(0x430 + i)} zig{i} zag{i}" for i in range(24))] * 2
    texts = set()
    for _ in range(4):
        made(tmp_path, documents, algorithm=algorithm, vocabulary_size=400)
        texts.add((tmp_path / "tokenizer.json").read_text())
    assert len(texts) == 1


@pytest.mark.parametrize("algorithm", ["wordpiece", "bpe", "unigram"])
def test_framed_and_back(tmp_path, sentences, algorithm):
    tokenizer = made(tmp_path, sentences(200), algorithm=algorithm, vocabulary_size=512)
    assert [tokenizer.token_to_id(token) for token in SPECIAL_TOKENS] == [0, 1, 2, 3, 4]
    encoding = tokenizer.encode("the hot word was there")
    assert (encoding.tokens[0], encoding.tokens[-1]) == ("[CLS]", "[SEP]")
    assert tokenizer.decode(encoding.ids) == "the hot word was there"
    assert len(encoding.ids) < 12  # whole words were learned


def test_bytes_know_everything(tmp_path, sentences):
    tokenizer = made(tmp_path, sentences(50), algorithm="bpe", vocabulary_size=320)
    assert tokenizer.decode(tokenizer.encode("Ωmega 🙂 naïve").ids) == "Ωmega 🙂 naïve"


def test_case_and_accents(tmp_path):
    documents = ["Déjà vu VU vu déjà Déjà"] * 20
    lower = made(tmp_path, documents, vocabulary_size=64)
    assert lower.encode("DÉJÀ").tokens == lower.encode("deja").tokens
    cased = made(tmp_path, documents, vocabulary_size=64, lowercase=False)
    assert cased.encode("Déjà").tokens != cased.encode("deja").tokens


def test_size_is_as_asked_and_padded(tmp_path):
    tokenizer = made(tmp_path, ["few words, few words"] * 5, vocabulary_size=1000)
    vocabulary = vocabulary_of(tokenizer, 1000)
    assert vocabulary.size == 1024
    assert vocabulary.used < 100
    assert (vocabulary.pad, vocabulary.unk, vocabulary.cls, vocabulary.sep, vocabulary.mask) == (0, 1, 2, 3, 4)


@pytest.mark.parametrize("size", [64, 100, 257])
def test_never_larger_than_asked(tmp_path, sentences, size):
    documents = [*sentences(100), "".join(chr(0x4E00 + i) for i in range(300))]
    tokenizer = made(tmp_path, documents, vocabulary_size=size)
    assert tokenizer.get_vocab_size() <= size


def test_nothing_to_learn_from(tmp_path):
    with pytest.raises(DataError, match="no training document"):
        made(tmp_path, [])


def test_bytes_need_room():
    with pytest.raises(RecipeError, match=r"data\.tokenizer.*256 is too small for byte-level BPE.*at least 320"):
        Recipe(data={"kind": "embedded", "tokenizer": {"kind": "trained", "algorithm": "bpe", "vocabulary_size": 256}})


@pytest.mark.parametrize(("stream", "count"), [(10, 100), (1000, 100), (777, 50), (5, 1)])
def test_sample_is_even_and_bounded(stream, count):
    kept = [int(text) for text in spread_sample((str(i) for i in range(stream)), count, 10**9)]
    assert count / 2 <= len(kept) <= count or len(kept) == stream
    gaps = {b - a for a, b in itertools.pairwise(kept)}
    assert len(gaps) <= 1
    assert kept[0] == 0


def test_sample_is_bounded_in_characters():
    kept = spread_sample(("x" * 1000 for _ in range(1000)), 10_000, 20_000)
    assert 10_000 <= sum(map(len, kept)) <= 20_000


def test_key_follows_corpus_and_knobs():
    one = TrainedTokenizer()
    assert one.key({"a": 1}) != one.key({"a": 2})
    assert one.key({}) != TrainedTokenizer(vocabulary_size=512).key({})
    json.dumps(one.key({}))
