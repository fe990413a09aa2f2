"""Streams: rows against a slow version, a bound on the disk, resumes, breaks, ends, and what no stream can do."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from tests.choices.data.conftest import WORDS
from workbench.base.errors import DataError, RecipeError
from workbench.choices.data import Files, Mixture, stream
from workbench.choices.data.data import Data
from workbench.choices.data.mixture_order import MixtureOrder
from workbench.choices.data.order import RowOrder
from workbench.choices.data.prepare import prepare
from workbench.choices.data.stream import StreamOrder
from workbench.choices.data.stream_blocks import Blocks
from workbench.choices.data.tokens import PreparedData, TokenStore
from workbench.recipes.recipe import Recipe

BLOCK, LENGTH, FIRST = 1 << 14, 32, 300
SMALL: dict[str, Any] = {
    "tokenizer": {"kind": "trained", "vocabulary_size": 256}, "sequence_length": LENGTH, "batch_size": 4,
    "heldout_fraction": 0.2, "stream": FIRST, "stream_block": BLOCK, "stream_mib": 1,
}  # fmt: skip


def document(number: int) -> str:
    """Return a document of a stream without end; every 50th is empty, every 40th repeats one of the first."""
    if number % 50 == 49:
        return ""
    draw = random.Random(number if number < FIRST or number % 40 else number % FIRST)
    return " ".join(draw.choices(WORDS, k=draw.randint(5, 80)))


class Source:
    """A stream of ``length`` documents, or without end; notes where it was opened, and can break."""

    def __init__(self, length: int | None = None) -> None:
        self.length, self.opened = length, []
        self.breaks: dict[int, int] = {}
        self.furthest = 0

    def __call__(self, data: Files, first: int) -> Iterator[str]:
        self.opened.append(first)
        for number in count(first) if self.length is None else range(first, self.length):
            if self.breaks.get(number, 0):
                self.breaks[number] -= 1
                raise DataError("the network is gone")
            self.furthest = max(self.furthest, number)
            yield document(number)


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Source:
    made = Source()
    monkeypatch.setattr(Files, "open_stream", lambda self, first: made(self, first))
    monkeypatch.setattr(Files, "documents", lambda self: islice(made(self, 0), self.stream))
    monkeypatch.setattr(Files, "sourced_documents", Data.sourced_documents)
    monkeypatch.setattr(stream, "WAITS", (0.0, 0.0, 0.0))
    # Batches of documents that the tokenizer gets: small, as blocks are here.
    monkeypatch.setattr(stream, "BATCH_CHARACTERS", 20_000)
    return made


@pytest.fixture
def data(tmp_path: Path) -> Files:
    (tmp_path / "a.txt").write_text("stands for the stream")
    return Files(paths=(str(tmp_path / "a.txt"),), **SMALL)


def order_of(data: Files) -> tuple[StreamOrder, PreparedData]:
    prepared = prepare(data, lambda line: None)
    order = data.row_order(prepared, 7)
    assert isinstance(order, StreamOrder)
    return order, prepared


def expected(prepared: PreparedData, documents: Iterator[str], blocks: int) -> list[RowOrder]:
    """The slow version: all tokens at once, every document encoded by itself, those held out left out by text."""
    tokenizer = Tokenizer.from_file(prepared.tokenizer_file)
    held = heldout_texts(prepared)
    cls, sep = prepared.vocabulary.cls, prepared.vocabulary.sep
    ids: list[int] = []
    begins: list[int] = []
    for text in documents:
        if text and text not in held:
            begins.append(len(ids))
            ids += [cls, *tokenizer.encode(text, add_special_tokens=False).ids, sep]
        if len(ids) >= blocks * BLOCK:
            break
    stores = []
    for low in range(0, blocks * BLOCK, BLOCK):
        bounds = [low, *(begin for begin in begins if low < begin < low + BLOCK), low + BLOCK]
        stores.append(TokenStore(np.array(ids[low : low + BLOCK], np.uint16), np.array(bounds) - low))
    return [RowOrder(store, LENGTH, 7) for store in stores]


def heldout_texts(prepared: PreparedData) -> set[str]:
    tokenizer = Tokenizer.from_file(prepared.tokenizer_file)
    store = prepared.heldout
    return {tokenizer.decode(store.ids_N[begin:end].tolist())
            for begin, end in zip(store.offsets_D1, store.offsets_D1[1:], strict=False)}  # fmt: skip


def test_rows_are_those_of_the_slow_version_and_the_disk_stays_bounded(
    source: Source, data: Files, cache: Path
) -> None:
    """48 blocks of 32 KiB through a cache of 1 MiB: more than the stream's first part by far, and than the disk."""
    order, prepared = order_of(data)
    rows = BLOCK // LENGTH
    assert order.rows == rows
    slow = expected(prepared, map(document, count()), 48)
    for block in range(48):
        # Straddles the end of a block, as a batch may.
        samples = np.array([block * rows, block * rows + 5, (block + 1) * rows - 1])
        batch = order.batch(samples)
        for mine, theirs in zip(batch, slow[block].batch(samples), strict=True):
            np.testing.assert_array_equal(mine, theirs)
        on_disk = sum(path.stat().st_size for path in (cache / "streams").rglob("*") if path.is_file())
        assert on_disk <= (1 << 20) + 4096
    both = order.batch(np.array([rows - 1, rows]))
    np.testing.assert_array_equal(both.tokens_BT[1], slow[1].batch(np.array([rows])).tokens_BT[0])
    made = len(list((cache / "streams").rglob("*.npz")))
    assert 4 <= made < 40, "the rest went"


def test_held_out_documents_are_not_trained_on(source: Source, data: Files) -> None:
    order, prepared = order_of(data)
    tokenizer = Tokenizer.from_file(prepared.tokenizer_file)
    store = order.blocks.block(3)
    texts = [tokenizer.decode(store.ids_N[begin:end].tolist())
             for begin, end in zip(store.offsets_D1, store.offsets_D1[1:], strict=False)]  # fmt: skip
    held = heldout_texts(prepared)
    later = {document(number) for number in range(FIRST, source.furthest)}
    assert held & later, "the stream repeats some of them"
    assert len(texts) > 100
    assert not held & set(texts)


@pytest.mark.parametrize("kept", [True, False], ids=["with the folder", "without it"])
def test_another_process_goes_on_where_one_was(source: Source, data: Files, cache: Path, kept: bool) -> None:
    order, prepared = order_of(data)
    rows = BLOCK // LENGTH
    samples = np.arange(9 * rows - 2, 9 * rows + 2)
    wanted = order.batch(samples)
    for path in (cache / "streams").rglob("*.npz" if kept else "*"):
        if path.is_file():
            path.unlink()
    source.opened.clear()
    again = data.row_order(prepared, 7)
    opened = len(source.opened)
    for mine, theirs in zip(again.batch(samples), wanted, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    first = source.opened[opened]
    assert (first > 1000) if kept else (first == 0), "read again from the start of the block, where that is known"


def test_a_damaged_block_is_made_again(source: Source, data: Files, cache: Path) -> None:
    order, prepared = order_of(data)
    wanted = order.blocks.block(2).ids_N
    for path in (cache / "streams").rglob("2.npz"):
        path.write_bytes(path.read_bytes()[:-900])
    np.testing.assert_array_equal(data.row_order(prepared, 7).blocks.block(2).ids_N, wanted)


def test_a_stream_that_breaks_goes_on_with_the_document_that_is_due(source: Source, data: Files) -> None:
    order, prepared = order_of(data)
    slow = expected(prepared, map(document, count()), 8)
    source.breaks = {400: 2, 401: 3, 900: 1}
    source.opened.clear()
    np.testing.assert_array_equal(order.blocks.block(7).ids_N, slow[7].store.ids_N)
    assert source.opened[-6:] == [400, 400, 401, 401, 401, 900]


def test_a_stream_that_stays_broken_is_one_error_and_can_be_taken_up(source: Source, data: Files) -> None:
    order, prepared = order_of(data)
    source.breaks = {2000: 99}
    far = 40
    with pytest.raises(DataError, match=r"broke off at document 2,000, and 3 further tries.*network is gone.*resumed"):
        order.blocks.block(far)
    source.breaks = {}
    np.testing.assert_array_equal(
        order.blocks.block(far).ids_N, expected(prepared, map(document, count()), far + 1)[far].store.ids_N
    )


def test_a_stream_that_ends_begins_again(source: Source, data: Files) -> None:
    source.length = 700
    order, prepared = order_of(data)
    passes = (document(number) for _ in count() for number in range(700))
    slow = expected(prepared, passes, 9)
    for block in range(9):
        np.testing.assert_array_equal(order.blocks.block(block).ids_N, slow[block].store.ids_N)
    assert order.read(0) == {"data.epochs": 0.0}
    assert order.read(9 * order.rows)["data.epochs"] >= 3


def test_rows_of_other_lengths_come_from_the_same_blocks(source: Source, data: Files) -> None:
    order, prepared = order_of(data)
    slow = expected(prepared, map(document, count()), 2)[1].of_length(24)
    short = order.of_length(24)
    sample = np.array([BLOCK // 24 + 3])
    np.testing.assert_array_equal(short.batch(sample).tokens_BT, slow.batch(sample).tokens_BT)
    assert order.of_length(LENGTH) is order


def test_files_are_taken_up_in_the_middle(tmp_path: Path, sentences: Any) -> None:
    """Without the stand-in: a folder of files is such a stream."""
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text("\n\n".join(sentences(40, number)))
    data = Files(paths=(str(tmp_path),), document_characters=200, **{**SMALL, "stream": 20})
    whole = list(data.model_copy(update={"stream": 0}).documents())
    assert list(data.open_stream(0)) == whole
    assert list(data.open_stream(17)) == whole[17:]
    assert list(data.documents()) == whole[:20]
    assert list(islice(stream.passages(data.open_stream, 1, len(whole) - 1), 3)) == [
        ((1, len(whole) - 1), whole[-1]), ((2, 0), whole[0]), ((2, 1), whole[1]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": ["exact_duplicates"]}, "data.steps: needs all of the text"),
        ({"tokens_limit": 1000}, "data.tokens_limit: needs all of the text"),
        ({"order": {"kind": "curriculum"}}, "data.order: needs all of the text"),
        ({"stream_block": 1 << 20}, "data.stream_mib: 1 MiB hold no 4 blocks of 1,048,576 tokens; use at least 16"),
        ({"stream_block": 1024, "sequence_length": 2048}, "a block holds no row of 2,048 tokens"),
    ],
)
def test_what_no_stream_can_do_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        Recipe(data={"kind": "files", "paths": ["a"], **SMALL, **changes})


def streams_of_a_mixture(tmp_path: Path, **changes: Any) -> Mixture:
    """A mixture of a stream that repeats what the other part holds out, and of that part."""
    parts = []
    for name, numbers in {"stream": range(700), "other": range(600, 900)}.items():
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps({"text": document(number)}) + "\n" for number in numbers))
        knobs = {key: SMALL[key] for key in SMALL if key.startswith("stream")} if name == "stream" else {}
        parts.append({"name": name, "source": {"kind": "files", "paths": [str(path)], **knobs}})
    shared = {key: SMALL[key] for key in SMALL if not key.startswith("stream")}
    return Mixture(parts=parts, **{**shared, **changes})


def test_a_stream_is_mixed_with_prepared_text(tmp_path: Path, cache: Path) -> None:
    """Without the stand-in: its rows are those of the slow version, through the end of the stream."""
    data = streams_of_a_mixture(tmp_path)
    prepared = prepare(data, lambda line: None)
    order = data.row_order(prepared, 7)
    assert isinstance(order, MixtureOrder)
    assert heldout_texts(prepared) & {document(number) for number in range(600, 700)}, "the other part holds some out"
    slow = expected(prepared, (document(number) for _ in count() for number in range(700)), 4)
    samples = np.arange(2 * 4 * BLOCK // LENGTH - 256)
    part_B, local_B = order.locate(samples)
    batch = order.batch(samples)
    for number in range(4):
        here_B = np.flatnonzero((part_B == 0) & (local_B // (BLOCK // LENGTH) == number))
        assert len(here_B)
        wanted = slow[number].batch(local_B[here_B])
        for mine, theirs in zip(batch[:3], wanted[:3], strict=True):
            np.testing.assert_array_equal(mine[here_B], theirs)
    assert order.read(int(samples[-1]))["data.epochs/stream"] >= 1
    # Another process, that reads every second row from the middle on, without the cache folder.
    shutil.rmtree(cache / "streams")
    again = data.row_order(prepared, 7)
    np.testing.assert_array_equal(again.batch(samples[901::2]).tokens_BT, batch.tokens_BT[901::2])
    assert set(again.epochs_of(samples[part_B == 0]).tolist()) >= {0, 1}


def test_what_no_stream_can_do_is_refused_in_a_mixture(tmp_path: Path) -> None:
    mixture = streams_of_a_mixture(tmp_path).model_dump(mode="json")
    mixture["parts"][0]["source"]["stream_block"] = 1 << 20
    with pytest.raises(RecipeError, match="part 'stream': stream_mib: 1 MiB hold no 4 blocks"):
        Recipe(data=mixture)
    with pytest.raises(RecipeError, match="part 'stream': steps: needs all of the text"):
        Recipe(data=streams_of_a_mixture(tmp_path, steps=["exact_duplicates"]))
    mixture["parts"][0] |= {"epochs": 2}
    with pytest.raises(RecipeError, match="part 'stream' is a stream, whose epochs nobody can limit"):
        Recipe(data=mixture)
    recipe = Recipe(data=streams_of_a_mixture(tmp_path))
    assert any("which one process reads" in each.message for each in recipe.data.problems_together(recipe, 2))


def test_several_processes_and_other_rows_are_refused(source: Source, data: Files) -> None:
    recipe = Recipe(data=data)
    assert any("read by one process" in each.message for each in data.problems_together(recipe, 2))
    order, _ = order_of(data)
    with pytest.raises(DataError, match=r"set data\.stream to 0"):
        order.arranged(lambda rows: rows.blocks and RowOrder(rows.store, LENGTH, 0))
    with pytest.raises(DataError, match=r"set data\.stream to 0 to look at rows"):
        order.places(np.array([0]))
    assert order.arranged(lambda rows: rows) is order


def test_a_full_disk_is_one_error(source: Source, data: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    order, _ = order_of(data)

    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Blocks, "_write", full)
    with pytest.raises(DataError, match="disk full while writing the cache"):
        order.batch(np.array([0]))
