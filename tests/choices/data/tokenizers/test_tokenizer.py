"""The contract of tokenizers: registered, keyed by what decides them, sized where a size was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.choices.choice import registry
from workbench.choices.data.tokenizers import PretrainedTokenizer, TokenizerChoice, TrainedTokenizer


def test_the_base_makes_nothing_and_is_not_offered(tmp_path: Path) -> None:
    assert TokenizerChoice not in registry("tokenizer").values()
    with pytest.raises(NotImplementedError):
        TokenizerChoice().key({})
    with pytest.raises(NotImplementedError):
        TokenizerChoice().make(iter(["text"]), tmp_path / "tokenizer.json")
    assert not list(tmp_path.iterdir())


def test_only_a_learned_vocabulary_has_a_size_of_the_users_choosing() -> None:
    assert TokenizerChoice().asked_size() == 0
    assert PretrainedTokenizer(name="some/name").asked_size() == 0
    assert TrainedTokenizer(vocabulary_size=777).asked_size() == 777


def test_only_a_learned_vocabulary_depends_on_the_corpus(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text("{}")
    given, learned = PretrainedTokenizer(name=str(file)), TrainedTokenizer()
    one, other = {"digest": "a"}, {"digest": "b"}
    assert given.key(one) == given.key(other)
    assert learned.key(one) != learned.key(other)
    before = given.key(one)
    file.write_text('{"changed": true}')
    assert given.key(one) != before, "a file that was replaced must not be taken from the cache"
