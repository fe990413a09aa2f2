"""Shards against a queue for each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.choices.data.orders.slow import prepared_of, rows_of
from workbench.base.errors import DataError, RecipeError
from workbench.choices.data import Embedded
from workbench.choices.data.order import shuffled
from workbench.choices.data.orders import Sharded
from workbench.recipes.recipe import Recipe

DRAW = np.random.default_rng(2)
DOCUMENTS = [DRAW.integers(5, 60, size).tolist() for size in DRAW.integers(1, 30, 40)]
LENGTH = 8


def reader(rows: list[list[int]], seed: int, shard: int) -> Iterator[list[int]]:
    """A process that reads its shard for ever, without replacement."""
    through = 0
    while True:
        for place in shuffled(seed, through, 3 + shard, len(rows)):
            yield rows[place]
        through += 1


@pytest.mark.parametrize("shards", [1, 2, 3, 7])
def test_rows_come_from_a_queue_for_each_shard(shards: int) -> None:
    order = Embedded(sequence_length=LENGTH, order=Sharded(shards=shards)).row_order(prepared_of(DOCUMENTS), 5)
    rows = rows_of(DOCUMENTS, shuffled(5, 0, 0, len(DOCUMENTS)).tolist(), LENGTH)
    assert len(rows) % 7, "shards differ in size"
    borders = [len(rows) * shard // shards for shard in range(shards + 1)]
    queues = [reader(rows[borders[s] : borders[s + 1]], 5, s) for s in range(shards)]
    samples = np.arange(4 * len(rows) + 5)
    assert order.batch(samples).tokens_BT.tolist() == [next(queues[sample % shards]) for sample in samples]


def test_two_readers_share_no_row_in_any_epoch() -> None:
    order = Embedded(sequence_length=LENGTH, order=Sharded(shards=4)).row_order(prepared_of(DOCUMENTS), 5)
    places = order.places(np.arange(5 * order.rows))
    assert not set(places[::2, 0].tolist()) & set(places[1::2, 0].tolist())


def test_more_shards_than_rows_are_refused() -> None:
    order = Embedded(sequence_length=LENGTH, order=Sharded(shards=4000)).row_order(prepared_of(DOCUMENTS), 5)
    with pytest.raises(DataError, match=r"rows of 8 tokens cannot fill 4,000 shards; use fewer"):
        order.batch(np.arange(2))


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"data": {"order": {"shards": 3}}}, r"data\.order\.shards: 3 shards cannot be owned by 2 processes"),
        ({"data": {"batch_size": 17}}, r"data\.batch_size: a process reads its own shards"),
        ({"data": {"batch_size": {"kind": "linear", "start": 8, "end": 16}}}, r"data\.batch_size"),
        ({"execution": {"micro_batch_size": 5}}, r"execution\.micro_batch_size"),
        ({"data": {"sequence_length": {"kind": "linear", "start": 16, "end": 32}}}, r"data\.sequence_length"),
    ],
)
def test_processes_that_would_read_other_shards_are_refused(changes: dict[str, object], path: str) -> None:
    recipe = Recipe(
        data={"kind": "embedded", "batch_size": 16, "order": {"kind": "sharded", "shards": 4}},
        execution={"kind": "native", "device": "cpu"},
    )
    recipe.check_together(2)
    with pytest.raises(RecipeError, match=path):
        recipe.with_(**changes).check_together(2)
