"""Given tokenizers: files, folders, names, and what they lack."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from workbench.base.errors import DataError
from workbench.choices.data import Files
from workbench.choices.data.prepare import prepare
from workbench.choices.data.tokenizers.pretrained import PretrainedTokenizer
from workbench.choices.data.tokenizers.trained import TrainedTokenizer
from workbench.models.export import tokenizer_settings


def gpt2_like(path, sentences) -> Tokenizer:
    """Byte-level BPE whose only special token is <|endoftext|>, with truncation stored in the file."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<|endoftext|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    tokenizer.train_from_iterator(sentences(100), trainer)
    tokenizer.enable_truncation(5)
    tokenizer.enable_padding(length=5)
    tokenizer.save(str(path))
    return tokenizer


@pytest.fixture
def corpus(tmp_path, sentences):
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in sentences(300)))
    return path


def prepared_with(corpus, name, say=lambda line: None):
    tokenizer = {"kind": "pretrained", "name": str(name)}
    return prepare(Files(paths=(str(corpus),), tokenizer=tokenizer, sequence_length=16, batch_size=4), say)


@pytest.mark.parametrize("as_folder", [True, False])
def test_file_and_folder(corpus, tmp_path, sentences, as_folder):
    (tmp_path / "tok").mkdir()
    file = tmp_path / "tok" / "tokenizer.json"
    TrainedTokenizer(vocabulary_size=300).make(iter(sentences(100)), file)
    prepared = prepared_with(corpus, file.parent if as_folder else file)
    tokenizer = Tokenizer.from_file(str(file))
    assert prepared.vocabulary.used == tokenizer.get_vocab_size()
    assert prepared.vocabulary.size % 64 == 0
    assert prepared.fingerprint["added_special_tokens"] == []
    assert prepared.train.ids_N[: prepared.train.offsets_D1[1]].tolist() in [
        tokenizer.encode(text).ids for text in sentences(300)
    ]


def test_missing_mask_token_is_added_and_said(corpus, tmp_path, sentences):
    original = gpt2_like(tmp_path / "gpt2.json", sentences)
    said: list[str] = []
    prepared = prepared_with(corpus, tmp_path / "gpt2.json", said.append)
    vocabulary, end = prepared.vocabulary, original.token_to_id("<|endoftext|>")
    assert prepared.fingerprint["added_special_tokens"] == ["[MASK]"]
    assert any("no [MASK]" in line for line in said)
    assert (vocabulary.cls, vocabulary.sep, vocabulary.pad) == (end, end, end)
    assert vocabulary.mask == original.get_vocab_size()
    assert vocabulary.used == original.get_vocab_size() + 1
    # Stored truncation to 5 tokens would have cut every document.
    assert np.diff(prepared.train.offsets_D1).max() > 20


def test_declared_special_tokens_play_their_parts(corpus, tmp_path, sentences):
    """Names that nobody could guess, one of them not in the vocabulary, in both forms that transformers writes."""
    tokenizer = gpt2_like(tmp_path / "tokenizer.json", sentences)
    tokenizer.add_special_tokens(["<begin>", "<stop>", "<empty>", "<what>"])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    files = {
        "special_tokens_map.json": {"bos_token": "<begin>", "eos_token": {"content": "<stop>"}, "cls_token": None},
        "tokenizer_config.json": {"pad_token": "<empty>", "unk_token": {"content": "<what>"}, "mask_token": "<gap>"},
    }
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    prepared = prepared_with(corpus, tmp_path)
    vocabulary = prepared.vocabulary
    made = Tokenizer.from_file(prepared.tokenizer_file)
    ids = (vocabulary.cls, vocabulary.sep, vocabulary.pad, vocabulary.unk, vocabulary.mask)
    assert [made.id_to_token(number) for number in ids] == ["<begin>", "<stop>", "<empty>", "<what>", "<gap>"]
    assert prepared.fingerprint["added_special_tokens"] == ["<gap>"]
    settings = tokenizer_settings(made, vocabulary, 16)
    assert (settings["pad_token"], settings["unk_token"]) == ("<empty>", "<what>")
    choice = PretrainedTokenizer(name=str(tmp_path))
    assert [problem.message for problem in choice.notices()] == [f"'{tmp_path}' has no <gap>: added, with new ids"]
    before = choice.key({})
    (tmp_path / "tokenizer_config.json").write_text("{")
    with pytest.raises(DataError, match=r"tokenizer_config.json' cannot be read"):
        choice.key({})
    (tmp_path / "tokenizer_config.json").unlink()
    assert choice.key({}) != before


def test_bert_names_through_transformers(corpus, tmp_path, sentences):
    """A folder as transformers saves one."""
    from transformers import PreTrainedTokenizerFast

    TrainedTokenizer(vocabulary_size=300).make(iter(sentences(100)), tmp_path / "t.json")
    fast = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "t.json"), mask_token="[MASK]", pad_token="[PAD]")
    fast.save_pretrained(tmp_path / "saved")
    assert prepared_with(corpus, tmp_path / "saved").vocabulary.mask == 4


def test_key_follows_the_content_not_the_corpus(tmp_path, sentences):
    gpt2_like(tmp_path / "t.json", sentences)
    choice = PretrainedTokenizer(name=str(tmp_path / "t.json"))
    first = choice.key({"corpus": 1})
    assert first == choice.key({"corpus": 2})
    (tmp_path / "t.json").write_text((tmp_path / "t.json").read_text() + " ")
    assert first != choice.key({})


def test_key_follows_files_of_older_kinds_too(tmp_path):
    """Else a cache would hand out the tokens of the vocabulary that was in the folder before."""
    choice = PretrainedTokenizer(name=str(tmp_path))
    keys = [choice.key({})]
    for name, text in (("vocab.txt", "[UNK]\na"), ("vocab.txt", "[UNK]\nb"), ("merges.txt", "a b")):
        (tmp_path / name).write_text(text)
        keys.append(choice.key({}))
    assert keys[0]["sha256"] is None
    assert len({key["sha256"] for key in keys}) == len(keys)


def test_errors(tmp_path, monkeypatch):
    (tmp_path / "no.json").write_text('{"model": 5}')
    with pytest.raises(DataError, match=r"no\.json' is not a tokenizer\.json"):
        PretrainedTokenizer(name=str(tmp_path / "no.json")).make(iter(()), tmp_path / "out.json")
    with pytest.raises(DataError, match=r"tokenizer '.*absent' does not exist; .*'trained'"):
        PretrainedTokenizer(name=str(tmp_path / "absent")).make(iter(()), tmp_path / "out.json")
    assert not (tmp_path / "out.json").exists()


def test_a_local_path_is_looked_at_before_anything_starts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "t.json").write_text("{}")
    (tmp_path / "t.txt").write_text("text")
    for name, why in (
        ("./nothere", "does not exist"),
        (str(tmp_path / "nothere"), "does not exist"),
        ("empty", "without a tokenizer"),
    ):
        (problem,) = Files(paths=("t.txt",), tokenizer={"kind": "pretrained", "name": name}).problems_here()
        assert problem.path == "data.tokenizer.name"
        assert why in problem.message
        with pytest.raises(DataError, match=why):
            PretrainedTokenizer(name=name).make(iter(()), tmp_path / "out.json")
    for name in ("gpt2", "owner/name", "t.json"):
        assert not list(PretrainedTokenizer(name=name).problems_here())
    assert PretrainedTokenizer(name="t.json").located() == {"name": str(tmp_path / "t.json")}
    assert PretrainedTokenizer(name="owner/name").located() == {}


def test_a_folder_whose_files_make_no_tokenizer_is_said_in_our_words(tmp_path):
    (tmp_path / "tokenizer_config.json").write_text("{}")
    with pytest.raises(DataError, match=r"cannot be had by name: .*; give a folder") as refused:
        PretrainedTokenizer(name=str(tmp_path)).make(iter(()), tmp_path / "out.json")
    assert "one of:" not in str(refused.value)
