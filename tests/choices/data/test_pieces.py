"""Borders of words and ends of sentences, against the tokenizers library's own idea of a word."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from workbench.choices.data.pieces import Pieces
from workbench.choices.data.tokenizers import TrainedTokenizer

TEXTS = ["The cat sat. It slept on the mat!", "Does unbelievable weather matter? It does not. Rarely, anyway."] * 20


def trained(tmp_path: Path, algorithm: str) -> Path:
    if algorithm == "unigram":
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        tokenizer.train_from_iterator(TEXTS, trainers.UnigramTrainer(vocab_size=60, show_progress=False))
        tokenizer.save(str(tmp_path / "tokenizer.json"))
    else:
        choice = TrainedTokenizer(algorithm=algorithm, vocabulary_size=320)  # type: ignore[arg-type]
        choice.make(iter(TEXTS), tmp_path / "tokenizer.json")
    return tmp_path / "tokenizer.json"


@pytest.mark.parametrize(("algorithm", "mark"), [("wordpiece", "##"), ("bpe", "\u0120"), ("unigram", "\u2581")])
def test_words_begin_where_the_library_says(tmp_path: Path, algorithm: str, mark: str) -> None:
    file = trained(tmp_path, algorithm)
    tokenizer, pieces = Tokenizer.from_file(str(file)), Pieces.of(file)
    assert pieces.mark == mark
    assert list(pieces.names) == [tokenizer.id_to_token(token) or "" for token in range(len(pieces.names))]
    begins_V = pieces.begins(512)
    text = "the cat unbelievable weather slept anyway"
    encoding = tokenizer.encode(text, add_special_tokens=False)
    words = encoding.word_ids
    # The first word may lack the mark of a space before it.
    expected = [place for place in range(1, len(words)) if words[place] != words[place - 1]]
    assert [place for place in np.flatnonzero(begins_V[encoding.ids]) if place] == expected
    assert [pieces.continues(token) for token in encoding.ids] == [not begins_V[token] for token in encoding.ids]


def test_sentences_end_at_their_marks(tmp_path: Path) -> None:
    for algorithm in ("wordpiece", "bpe", "unigram"):
        file = trained(tmp_path, algorithm)
        tokenizer, ends_V = Tokenizer.from_file(str(file)), Pieces.of(file).ends_sentence(512)
        ids = tokenizer.encode("The cat sat. It slept, anyway! Does it?", add_special_tokens=False).ids
        assert int(ends_V[ids].sum()) == 3


def test_a_vocabulary_without_marks_says_so(tmp_path: Path) -> None:
    words = Tokenizer(models.WordLevel({"a": 0, "b": 1, "[UNK]": 2}, unk_token="[UNK]"))
    words.save(str(tmp_path / "tokenizer.json"))
    pieces = Pieces.of(tmp_path / "tokenizer.json")
    assert (pieces.mark, pieces.begins(4).all()) == ("", True)
    assert [pieces.text(0), pieces.text(7)] == ["a", "7"]
