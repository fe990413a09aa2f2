"""Token files: every format, the same tokens and rows as the text gives, and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

from workbench.base.errors import DataError, RecipeError
from workbench.choices.data import Files, Mixture, TokenFile
from workbench.choices.data.order import RELEASED_ROWS, RowOrder
from workbench.choices.data.prepare import prepare
from workbench.choices.data.store import SPLITS
from workbench.choices.data.tokens import PreparedData, TokenStore
from workbench.recipes.recipe import Recipe

SHAPE: dict[str, Any] = {"sequence_length": 16, "batch_size": 4}


def quiet(line: str) -> None:
    """Say nothing."""


@pytest.fixture
def text(tmp_path: Path, sentences: Any) -> PreparedData:
    """Text prepared from files with a held-out file, and its tokenizer beside."""
    texts = sentences(300)
    for name, part in (("train", texts[:260]), ("val", texts[260:])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps({"text": each}) + "\n" for each in part))
    data = Files(
        paths=(str(tmp_path / "train.jsonl"),), heldout_paths=(str(tmp_path / "val.jsonl"),),
        tokenizer={"kind": "trained", "algorithm": "bpe", "vocabulary_size": 512}, **SHAPE,
    )  # fmt: skip
    prepared = prepare(data, quiet)
    (tmp_path / "tokenizer.json").write_bytes(Path(prepared.tokenizer_file).read_bytes())
    return prepared


def stream(store: TokenStore, sep: int, *, before: bool = False) -> np.ndarray:
    """The documents as other programs write them: ids and the end of text, before or behind."""
    pieces = []
    for begin, end in zip(store.offsets_D1, store.offsets_D1[1:], strict=False):
        ids = np.asarray(store.ids_N[begin + 1 : end - 1])
        pieces += [[sep], ids] if before else [ids, [sep]]
    return np.concatenate(pieces)


def documents_of(store: TokenStore) -> set[tuple[int, ...]]:
    borders = zip(store.offsets_D1, store.offsets_D1[1:], strict=False)
    return {tuple(store.ids_N[begin:end].tolist()) for begin, end in borders}


def write(path: Path, ids: np.ndarray, form: str = "raw") -> Path:
    if form == "npy":
        np.save(path.with_suffix(".npy"), ids.astype(np.int32))
        return path.with_suffix(".npy")
    header = np.zeros(256, "<i4")
    header[:3] = {"llm.c": (20240520, 1, len(ids)), "llama": (20240801, 7, len(ids))}.get(form, (0, 0, 0))
    body = ids.astype("<u4" if form == "llama" else "<u2").tobytes()
    path.write_bytes((b"" if form == "raw" else header.tobytes()) + body)
    return path


def data_of(folder: Path, **changes: Any) -> TokenFile:
    given = {"paths": [str(folder / "train.bin")], "tokenizer": {
        "kind": "pretrained", "name": str(folder / "tokenizer.json")}, **SHAPE, **changes}  # fmt: skip
    return TokenFile(**given)


@pytest.mark.parametrize("form", ["raw", "llm.c", "llama", "npy"])
def test_token_files_give_the_tokens_and_rows_of_their_text(tmp_path: Path, text: PreparedData, form: str) -> None:
    sep = text.vocabulary.sep
    paths = [write(tmp_path / name, stream(store, sep, before=form == "llm.c"), form)
             for name, store in (("train.bin", text.train), ("val.bin", text.heldout))]  # fmt: skip
    data = data_of(tmp_path, paths=[str(paths[0])], heldout_paths=[str(paths[1])])
    prepared = prepare(data, quiet)
    for split in SPLITS:
        ours, theirs = getattr(prepared, split), getattr(text, split)
        assert np.array_equal(ours.ids_N, theirs.ids_N)
        assert np.array_equal(ours.offsets_D1, theirs.offsets_D1)
    assert np.array_equal(prepared.heldout.bytes_N, text.heldout.bytes_N), "a byte-level tokenizer loses nothing"
    used = text.vocabulary.used
    assert np.array_equal(prepared.counts_V[:used], text.counts_V[:used])
    rows = [order.batch(np.arange(200)) for order in (
        data.row_order(prepared, 5), Files(paths=("x",), **SHAPE).row_order(text, 5))]  # fmt: skip
    assert all(torch.equal(one, other) for one, other in zip(*rows, strict=True))
    assert prepared.fingerprint["heldout_split"]["separator"] == sep
    tokenizer = Tokenizer.from_file(prepared.tokenizer_file)
    assert next(data.documents()) == tokenizer.decode(text.train.ids_N[1 : text.train.offsets_D1[1] - 1].tolist())


def test_chunks_do_not_matter(tmp_path: Path, text: PreparedData, monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.choices.data import token_build, token_reading

    write(tmp_path / "train.bin", stream(text.train, text.vocabulary.sep))
    whole = prepare(data_of(tmp_path), quiet)
    monkeypatch.setattr(token_reading, "CHUNK_TOKENS", 37)
    monkeypatch.setattr(token_build, "BATCH_TOKENS", 101)
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "another"))
    assert prepare(data_of(tmp_path), quiet).fingerprint == whole.fingerprint
    sides = [documents_of(store) for store in (whole.train, whole.heldout)]
    assert sides[1], "a share is held out"
    assert not sides[0] & sides[1]
    assert sum(map(len, sides)) == len({*sides[0], *sides[1]}) == text.train.documents


def test_a_file_without_ends_is_cut(tmp_path: Path, text: PreparedData) -> None:
    ids = np.delete(stream(text.train, 1), np.flatnonzero(stream(text.train, 1) == 1))
    write(tmp_path / "train.bin", ids)
    prepared = prepare(data_of(tmp_path, document_tokens=100), quiet)
    lengths = np.concatenate([np.diff(prepared.train.offsets_D1), np.diff(prepared.heldout.offsets_D1)])
    assert sorted(set(lengths.tolist())) == sorted({102, len(ids) % 100 + 2})
    assert lengths.sum() == len(ids) + 2 * len(lengths)


def test_held_out_text_that_stands_in_training_is_said(tmp_path: Path, text: PreparedData) -> None:
    write(tmp_path / "train.bin", stream(text.train, text.vocabulary.sep))
    write(tmp_path / "val.bin", stream(text.train, text.vocabulary.sep)[: text.train.tokens // 4])
    said: list[str] = []
    prepared = prepare(data_of(tmp_path, heldout_paths=[str(tmp_path / "val.bin")]), said.append)
    assert not documents_of(prepared.heldout) & documents_of(prepared.train), "whole documents leave the training text"
    assert 0 < prepared.fingerprint["heldout_overlap"] < 0.2, "the document that was cut off at the end stays"
    assert f"{prepared.fingerprint['heldout_overlap']:.2%} of the held-out text's runs" in " ".join(said)


def test_a_mixture_reads_them_as_text(tmp_path: Path, text: PreparedData) -> None:
    write(tmp_path / "train.bin", stream(text.train, text.vocabulary.sep))
    source = data_of(tmp_path, sequence_length=128, batch_size=32).model_dump(mode="json")
    parts = [{"name": "tokens", "source": source},
             {"name": "text", "source": {"kind": "files", "paths": [str(tmp_path / "val.jsonl")]}}]  # fmt: skip
    mixture = Mixture(parts=parts, tokenizer={"kind": "trained", "vocabulary_size": 256}, **SHAPE)
    prepared = prepare(mixture, quiet)
    assert len(prepared.parts["tokens"].train) + len(prepared.parts["tokens"].heldout) == text.train.documents
    assert Recipe(data=mixture).to_dict()["data"]["parts"][0]["source"]["tokenizer"]["kind"] == "pretrained"


def _broken(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


@pytest.mark.parametrize(
    ("form", "breaks", "message"),
    [
        ("raw", lambda path: path.write_bytes(b""), "is empty"),
        ("raw", _broken, "no multiple of the 2 of uint16; it is cut off, or data.dtype is another"),
        ("llm.c", _broken, "is damaged: its header says"),
        ("raw", lambda path: path.write_bytes(np.full(5000, 700, "<u2").tobytes()),
         "holds the id 700 at token 0, and the tokenizer has"),
        ("raw", lambda path: path.unlink(), "no such file or folder"),
    ],
)  # fmt: skip
def test_what_is_no_token_file_is_refused(
    tmp_path: Path, text: PreparedData, form: str, breaks: Any, message: str
) -> None:
    path = write(tmp_path / "train.bin", stream(text.train, text.vocabulary.sep), form)
    breaks(path)
    data = data_of(tmp_path)
    with pytest.raises(DataError) as refused:
        prepare(data, quiet)
    assert message in str(refused.value)
    assert message in str(list(data.problems_here())) or "holds the id" in message
    assert not list((tmp_path / "cache").rglob("*.tmp"))


def test_arrays_that_are_no_row_of_ids_are_refused(tmp_path: Path, text: PreparedData) -> None:
    np.save(tmp_path / "train.npy", np.zeros((3, 4), np.float32))
    with pytest.raises(DataError, match=r"holds float32 of shape \(3, 4\), expected one row of whole numbers"):
        prepare(data_of(tmp_path, paths=[str(tmp_path / "train.npy")]), quiet)


def test_tokenizers_and_steps_that_make_no_sense_are_refused() -> None:
    with pytest.raises(RecipeError, match="'trained' would learn other tokens than the files hold"):
        Recipe(data={"kind": "token_file", "paths": ["x.bin"], "tokenizer": "trained"})
    with pytest.raises(RecipeError, match="steps change text, and token files hold none"):
        Recipe(data={"kind": "token_file", "paths": ["x.bin"], "steps": ["exact_duplicates"]})


RESIDENT = """
import resource, sys
from pathlib import Path

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20

import numpy as np, torch, tokenizers
from tests.peak_memory import peak_mib
from workbench.choices.data import TokenFile
from workbench.choices.data.order import RowOrder
from workbench.choices.data.prepare import prepare
from workbench.choices.data.tokens import TokenStore
"""
PREPARE = """
data = TokenFile(paths=(sys.argv[1],), tokenizer={"kind": "pretrained", "name": sys.argv[2]}, heldout_fraction=0.001,
                 sequence_length=512, batch_size=8)
before = resident()
prepared = prepare(data, lambda line: None)
print(prepared.train.tokens, round(peak_mib() - before))
"""
READ = """
tokens, document = 5_000_000_000, 1000
before = resident()
store = TokenStore(np.memmap(sys.argv[1], np.uint16, "r", shape=(tokens,)), np.arange(0, tokens + 1, document))
order = RowOrder(store, 512, seed=0)
most = 0
for first in range(0, 40_000, 64):
    order.batch(np.arange(first, first + 64))
    most = max(most, resident())
print(order.rows, round(most - before))
"""


def _said(program: str, *arguments: str) -> tuple[int, int]:
    command = [sys.executable, "-c", RESIDENT + program, *arguments]
    first, second = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return int(first), int(second)


def test_pages_that_were_read_do_not_stay(tmp_path: Path) -> None:
    """Rows from everywhere in a mapped file of 400 MB leave less than the pages of 2048 rows behind."""
    (tmp_path / "ids").touch()
    os.truncate(tmp_path / "ids", 400 << 20)
    ids_N = np.memmap(tmp_path / "ids", np.uint16, "r")
    order = RowOrder(TokenStore(ids_N, np.array([0, len(ids_N)])), 2048, seed=0)
    most, before = 0, _mapped_mib()
    for first in range(0, 12 * RELEASED_ROWS, RELEASED_ROWS // 4):
        order.batch(np.arange(first, first + RELEASED_ROWS // 4))
        most = max(most, _mapped_mib() - before)
    assert most < 140


def _mapped_mib() -> int:
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssFile"))
    return int(line.split()[1]) >> 10


@pytest.mark.extended
@pytest.mark.process
def test_memory_of_preparing_does_not_grow_with_the_file(tmp_path: Path, text: PreparedData) -> None:
    """Files of 40 MB and of 200 MB: chunk after chunk is read, and 8 bytes a document are kept."""
    draw = np.random.default_rng(0)
    block = np.where(draw.random(1 << 22) < 1 / 1000, 3, draw.integers(5, 250, 1 << 22)).astype("<u2")
    added = []
    for tokens in (20_000_000, 100_000_000):
        with (tmp_path / "train.bin").open("wb") as file:
            for begin in range(0, tokens, len(block)):
                file.write(np.roll(block, begin // 43_000)[: tokens - begin].tobytes())
        read, mib = _said(PREPARE, str(tmp_path / "train.bin"), str(tmp_path / "tokenizer.json"))
        assert read > 0.95 * tokens
        added.append(mib)
    assert max(added) < 300
    assert added[1] - added[0] < 50


@pytest.mark.extended
@pytest.mark.process
def test_rows_of_a_file_of_10_gb_take_less_than_500_mb(tmp_path: Path) -> None:
    """A file with a hole in place of ids: 5 billion tokens in 5 million documents, rows from all over it."""
    (tmp_path / "ids").touch()
    os.truncate(tmp_path / "ids", 10_000_000_000)
    rows, mib = _said(READ, str(tmp_path / "ids"))
    assert rows == 5_000_000_000 // 512
    print(f"{mib} MiB")
    assert mib < 500_000_000 >> 20
