"""What every order keeps: rows are a pure function of (seed, sample index), for any number of readers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.choices.data.orders.slow import prepared_of
from workbench.choices.data import Embedded
from workbench.choices.data.order import RowOrder
from workbench.choices.data.orders import Curriculum, Order, Sharded, Shuffled

LENGTH = 16
DRAW = np.random.default_rng(0)
PREPARED = prepared_of([DRAW.integers(5, 60, size).tolist() for size in DRAW.integers(1, 40, 60)])
ORDERS = [
    Shuffled(),
    Shuffled(reshuffle="rows"),
    Curriculum(pacing="sorted"),
    Curriculum(pacing="linear", pace_tokens=1500, by="frequency"),
    Curriculum(pacing="root", pace_tokens=700, first="hard"),
    Sharded(shards=4),
]
each_order = pytest.mark.parametrize("order", ORDERS, ids=["documents", "rows", "sorted", "linear", "root", "shards"])


def rows(order: Order, seed: int = 3) -> RowOrder:
    return Embedded(sequence_length=LENGTH, order=order).row_order(PREPARED, seed)


@each_order
@pytest.mark.parametrize("readers", [1, 2, 4])
def test_readers_together_see_every_row(order: Order, readers: int) -> None:
    """Also where a batch straddles epochs, and whatever was asked before."""
    used, size = rows(order), rows(order).rows
    for first in (0, size - 5, 3 * size + 2):
        samples = np.arange(first, first + 12)
        whole = used.batch(samples)
        for reader in range(readers):
            for part, every in zip(rows(order).batch(samples[reader::readers]), whole, strict=True):
                assert torch.equal(part, every[reader::readers])


@each_order
def test_rows_of_another_length_keep_the_order(order: Order) -> None:
    shorter = rows(order).of_length(8)
    again = Embedded(sequence_length=8, order=order).row_order(PREPARED, 3)
    samples = np.arange(again.rows - 4, again.rows + 4)
    assert torch.equal(shorter.batch(samples).tokens_BT, again.batch(samples).tokens_BT)


@each_order
def test_seeds_differ(order: Order) -> None:
    samples = np.arange(2 * rows(order).rows)
    assert not torch.equal(rows(order, 3).batch(samples).tokens_BT, rows(order, 4).batch(samples).tokens_BT)
