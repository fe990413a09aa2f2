"""Preparation: split, exact tokens and bytes, cache, too little text."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from workbench.base.errors import DataError
from workbench.choices.data import Files
from workbench.choices.data import encoding as module
from workbench.choices.data.prepare import is_prepared, prepare, usual_seconds
from workbench.choices.data.split import is_heldout

SMALL = {"tokenizer": {"kind": "trained", "vocabulary_size": 256}, "sequence_length": 16, "batch_size": 4}


@pytest.fixture
def corpus(tmp_path: Path, sentences) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in sentences(300)))
    return path


def data_of(corpus: Path, **changes) -> Files:
    return Files(paths=(str(corpus),), **{**SMALL, **changes})


def quiet(line: str) -> None:
    """Say nothing."""


def test_documents_come_back_and_lie_on_one_side(corpus, sentences):
    data = data_of(corpus)
    prepared = prepare(data, quiet)
    tokenizer = Tokenizer.from_file(prepared.tokenizer_file)
    expected = {False: [], True: []}
    for text in sentences(300):
        expected[is_heldout(text, data.heldout_fraction)].append(text)
    for store, texts in ((prepared.train, expected[False]), (prepared.heldout, expected[True])):
        assert store.documents == len(texts) > 0
        for d, text in enumerate(texts):
            ids = store.ids_N[store.offsets_D1[d] : store.offsets_D1[d + 1]].tolist()
            assert ids == tokenizer.encode(text).ids  # the file itself frames [CLS] .. [SEP]
            assert ids[0] == prepared.vocabulary.cls
            assert ids[-1] == prepared.vocabulary.sep
            assert tokenizer.decode(ids) == text


def test_second_time_does_no_work_and_is_equal(corpus, cache, monkeypatch):
    first = prepare(data_of(corpus), quiet)
    copies = [store.ids_N.copy() for store in (first.train, first.heldout)]
    said: list[str] = []
    monkeypatch.setattr(Files, "documents", lambda self: pytest.fail("documents were read again"))
    # Neither the seed nor the shape of a batch decides the tokens.
    second = prepare(data_of(corpus, sequence_length=8, batch_size=2), said.append)
    assert said == []
    assert second.fingerprint == first.fingerprint
    assert second.vocabulary == first.vocabulary
    for store, copy in zip((second.train, second.heldout), copies, strict=True):
        assert np.array_equal(store.ids_N, copy)
    assert not list(cache.rglob("*.tmp"))


def test_rebuilding_gives_the_same_bytes(corpus, cache, monkeypatch, tmp_path):
    first = prepare(data_of(corpus), quiet)
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "another"))
    second = prepare(data_of(corpus), quiet)
    assert second.tokenizer_file != first.tokenizer_file
    assert second.fingerprint == first.fingerprint  # holds the SHA-256 of tokens and tokenizer


@pytest.mark.parametrize(
    "change",
    [{"heldout_fraction": 0.2}, {"document_characters": 5}, {"tokenizer": {"kind": "trained", "vocabulary_size": 320}}],
)
def test_what_decides_the_tokens_decides_the_key(corpus, change):
    first, second = prepare(data_of(corpus, **change), quiet), prepare(data_of(corpus), quiet)
    assert first.fingerprint["key"] != second.fingerprint["key"]


def test_what_takes_long_is_named_and_how_long_it_took_is_remembered(corpus, cache):
    data = data_of(corpus)
    said: list[str] = []
    assert usual_seconds(data) is None
    prepare(data, say=said.append)
    doing = ("reading the text and splitting it", "learning the vocabulary", "turning the text into tokens")
    assert said[:3] == [f"{what}, once" for what in doing]
    assert usual_seconds(data) >= 0
    # Of the same text, however it is split; of other text nobody knows.
    assert usual_seconds(data.model_copy(update={"heldout_fraction": 0.2, "batch_size": 3})) is not None
    assert usual_seconds(data.model_copy(update={"paths": ("elsewhere",)})) is None


def test_what_is_not_prepared_is_named_anew_only_when_the_cache_has_changed(corpus, cache, monkeypatch):
    data = data_of(corpus)
    named: list[int] = []
    sources = type(data).sources
    monkeypatch.setattr(type(data), "sources", lambda self: named.append(1) or sources(self))
    assert [is_prepared(data) for _ in range(3)] == [False] * 3
    assert len(named) == 1
    prepare(data, say=lambda line: None)
    assert [is_prepared(data) for _ in range(3)] == [True] * 3
    # Another split is another entry.
    other = data.model_copy(update={"heldout_fraction": 0.2})
    assert [is_prepared(other) for _ in range(3)] == [False] * 3
    prepare(other, say=lambda line: None)
    assert is_prepared(other)


def damage_bit(entry: Path) -> None:
    ids = bytearray((entry / "train.ids.bin").read_bytes())
    ids[100] ^= 1
    (entry / "train.ids.bin").write_bytes(ids)


def damage_tokenizer(entry: Path) -> None:
    (entry / "tokenizer.json").write_text((entry / "tokenizer.json").read_text().replace("the", "teh"))


def damage_manifest(entry: Path) -> None:
    manifest = (entry / "manifest.json").read_text()
    (entry / "manifest.json").write_text(manifest[: len(manifest) // 2])


def damage_missing(entry: Path) -> None:
    (entry / "heldout.offsets.bin").unlink()


@pytest.mark.parametrize("damage", [damage_bit, damage_tokenizer, damage_manifest, damage_missing])
def test_damaged_cache_is_reported_and_built_again(corpus, damage):
    first = prepare(data_of(corpus), quiet)
    fingerprint = first.fingerprint
    entry = Path(first.tokenizer_file).parent
    del first
    damage(entry)
    said: list[str] = []
    again = prepare(data_of(corpus), said.append)
    assert "damaged cache entry" in said[0]
    assert str(entry) in said[0]
    assert again.fingerprint == fingerprint


@pytest.mark.extended
@pytest.mark.process
def test_two_processes_build_once(corpus, cache, tmp_path):
    """Both get the tokens; only one of them says that it encoded anything."""
    script = (
        "import sys\nfrom workbench.choices.data import Files\nfrom workbench.choices.data.prepare import prepare\n"
        f"data = Files.model_validate({data_of(corpus).model_dump(mode='json')!r})\n"
        "sys.stdin.readline()\np = prepare(data)\nprint('tokens', p.train.tokens, p.fingerprint['train']['sha256'])\n"
    )
    environment = {**os.environ, "WORKBENCH_CACHE": str(cache)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        for _ in range(2)
    ]
    outputs = [process.communicate("go\n", timeout=240)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    results = [next(line for line in output.splitlines() if line.startswith("tokens")) for output in outputs]
    assert results[0] == results[1]
    assert sum("turning the text into tokens" in output for output in outputs) == 1


@pytest.mark.process
def test_full_disk_leaves_nothing_behind(corpus, cache):
    """A real write that fails: files of this process may not grow beyond 2 kB."""
    script = (
        "import resource, signal\nfrom workbench.choices.data import Files\n"
        "from workbench.choices.data.prepare import prepare\nfrom workbench.base.errors import DataError\n"
        "import tokenizers\n"
        f"data = Files.model_validate({data_of(corpus).model_dump(mode='json')!r})\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nresource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        "try:\n    prepare(data)\nexcept DataError as error:\n    print('DataError:', error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=240, check=False)
    message = done.stdout.splitlines()[-1]
    assert message.startswith("DataError: disk full while writing the cache"), done.stdout + done.stderr
    assert "WORKBENCH_CACHE" in message
    assert [path.name for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock"] == []
    assert not list(cache.rglob("*.tmp"))


def test_cache_that_cannot_be_written_is_one_error(corpus, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(DataError, match=r"cannot be written.*WORKBENCH_CACHE"):
        prepare(data_of(corpus), quiet)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"batch_size": 4096}, r"too small: [\d,]+ training tokens in \d+ doc.*needs 65,536 \(4096 rows of 16"),
        ({"heldout_fraction": 1e-5}, r"split is too small: 0 tokens.*heldout_fraction \(now 1e-05\)"),
    ],
)
def test_too_little_text_for_a_batch_or_a_score(corpus, changes, why):
    with pytest.raises(DataError, match=why):
        prepare(data_of(corpus, **changes), quiet)


@pytest.mark.parametrize("content", ["", '{"text": ""}\n{"text": " \\n "}\n'])
def test_empty_corpus(tmp_path, content):
    path = tmp_path / "empty.jsonl"
    path.write_text(content)
    with pytest.raises(DataError, match="no training document"):
        prepare(data_of(path), quiet)


def test_own_heldout_set_wins_and_is_kept_out_of_training(tmp_path, sentences):
    texts = sentences(200)
    train, heldout = tmp_path / "train.jsonl", tmp_path / "valid.jsonl"
    train.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    heldout.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts[:40]))
    said: list[str] = []
    prepared = prepare(Files(paths=(str(train), str(heldout)), heldout_paths=(str(heldout),), **SMALL), said.append)
    assert "40 documents of the training text stand in the held-out text, too, and were left out of training" in said
    assert prepared.heldout.documents == 40
    assert prepared.train.documents == 160


def test_text_that_looks_like_a_special_token_is_text(tmp_path, sentences):
    path = tmp_path / "c.jsonl"
    texts = [f"{text} [MASK] [SEP] [CLS] [PAD] end" for text in sentences(100)]
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    prepared = prepare(data_of(path), quiet)
    store, special = prepared.train, prepared.vocabulary.special
    for d in range(store.documents):
        inside = store.ids_N[store.offsets_D1[d] + 1 : store.offsets_D1[d + 1] - 1]
        assert not np.isin(inside, special).any()


@pytest.mark.parametrize("algorithm", ["wordpiece", "bpe"])
def test_bytes_of_heldout_tokens_sum_to_their_documents(tmp_path, sentences, algorithm, monkeypatch):
    texts = [f"  {text}\n\tGrüße — 日本 🙂🙂 \x00 end  \n" for text in sentences(60)]
    path, valid = tmp_path / "train.jsonl", tmp_path / "valid.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in sentences(200, seed=1)))
    valid.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    tokenizer = {"kind": "trained", "vocabulary_size": 512, "algorithm": algorithm}
    data = Files(paths=(str(path),), heldout_paths=(str(valid),), **{**SMALL, "tokenizer": tokenizer})
    for characters in (2_000_000, 20):
        monkeypatch.setattr(module, "BATCH_CHARACTERS", characters)
        monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / str(characters)))
        store = prepare(data, quiet).heldout
        assert store.documents == 60
        for text, begin, end in zip(texts, store.offsets_D1, store.offsets_D1[1:], strict=False):
            sizes = store.bytes_N[begin:end]
            assert sizes.sum() == len(text.encode())
            assert sizes[0] == sizes[-1] == 0, "[CLS] and [SEP] stand for no text"


def test_one_small_text_file_is_enough_and_too_little_says_what_helps(tmp_path):
    draw = random.Random(1)
    lines = [" ".join(f"w{draw.randrange(500)}" for _ in range(12)) for _ in range(1150)]
    path = tmp_path / "my.txt"
    path.write_text("\n\n".join(lines), encoding="utf-8")
    assert 60_000 < path.stat().st_size < 80_000
    prepared = prepare(data_of(path), quiet)
    assert prepared.heldout.tokens >= 64
    with pytest.raises(DataError, match=r"heldout_fraction \(now 1e-06\), lower data.document_characters \(now 8000\)"):
        prepare(data_of(path, heldout_fraction=1e-6), quiet)


def test_held_out_text_that_repeats_training_text_is_said_to_be_left_out(tmp_path, sentences):
    texts = sentences(200)
    train, valid = tmp_path / "train.jsonl", tmp_path / "valid.jsonl"
    long = [" ".join(f"{name}{i}" for i in range(40)) for name in "abcdefgh"]
    train.write_text("".join(json.dumps({"text": text}) + "\n" for text in [*texts, long[0], long[1]]))
    valid.write_text("".join(json.dumps({"text": text}) + "\n" for text in [*(f"{text}." for text in long)]))
    said: list[str] = []
    prepare(Files(paths=(str(train),), heldout_paths=(str(valid),), **SMALL), said.append)
    assert "parts of 2 held-out documents that repeat training text" in said[-2]
    assert said[-1].startswith("tokenizer: ")
