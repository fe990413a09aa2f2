"""Row order: pure, complete, exact."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.base.errors import DataError
from workbench.choices.data.order import RowOrder, shuffled
from workbench.choices.data.tokens import TokenStore


def store_of(lengths: list[int]) -> TokenStore:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return TokenStore(np.arange(offsets[-1], dtype=np.uint32), offsets)


def slow_rows(order: RowOrder, epoch: int) -> list[list[tuple[int, int, int]]]:
    """Rows of an epoch by the obvious loop: (token, position in its piece, piece of the row) of every place."""
    store, length = order.store, order.sequence_length
    stream = []
    for document in shuffled(order.seed, epoch, 0, store.documents):
        begin, end = store.offsets_D1[document], store.offsets_D1[document + 1]
        stream += [(int(store.ids_N[i]), int(document)) for i in range(begin, end)]
    rows = []
    for row in shuffled(order.seed, epoch, 1, order.rows):
        places, piece, position, last = [], -1, 0, None
        for token, document in stream[row * length : (row + 1) * length]:
            piece, position = (piece + 1, 0) if document != last else (piece, position + 1)
            last = document
            places.append((token, position, piece))
        rows.append(places)
    return rows


lengths = st.lists(st.integers(1, 40), min_size=1, max_size=30)


@settings(max_examples=80)
@given(lengths=lengths, length=st.integers(1, 24), seed=st.integers(0, 2**31 - 1), epoch=st.integers(0, 5))
def test_rows_equal_the_obvious_loop(lengths, length, seed, epoch):
    store = store_of(lengths)
    if store.tokens < length:
        with pytest.raises(DataError, match="do not fill one row"):
            RowOrder(store, length, seed)
        return
    order = RowOrder(store, length, seed)
    batch = order.batch(np.arange(epoch * order.rows, (epoch + 1) * order.rows))
    expected = np.array(slow_rows(order, epoch))
    assert np.array_equal(batch.tokens_BT.numpy(), expected[..., 0])
    assert np.array_equal(batch.positions_BT.numpy(), expected[..., 1])
    assert np.array_equal(batch.documents_BT.numpy(), expected[..., 2])


def test_resuming_needs_only_the_sample_index(make_store):
    """A fresh order gives what one gives that has been through other epochs, in any order of asking."""
    store = make_store([3, 50, 7, 7, 120, 2, 19] * 20)
    used = RowOrder(store, 16, seed=7)
    for epoch in (0, 3, 1, 2):
        used.batch(np.arange(epoch * used.rows, epoch * used.rows + 5))
    straddling = np.arange(2 * used.rows - 3, 2 * used.rows + 3)
    for ours, fresh in zip(used.batch(straddling), RowOrder(store, 16, seed=7).batch(straddling), strict=True):
        assert torch.equal(ours, fresh)


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_ranks_together_see_the_whole_batch(make_store, ranks):
    order = RowOrder(make_store([11] * 100), 8, seed=1)
    samples = np.arange(30, 60)
    whole = order.batch(samples)
    for rank in range(ranks):
        part = RowOrder(make_store([11] * 100), 8, seed=1).batch(samples[rank::ranks])
        for ours, all_rows in zip(part, whole, strict=True):
            assert torch.equal(ours, all_rows[rank::ranks])


def test_epochs_and_seeds_differ(make_store):
    store = make_store([13] * 64)
    order = RowOrder(store, 16, seed=0)
    first, second = (order.batch(np.arange(e * order.rows, (e + 1) * order.rows)).tokens_BT for e in (0, 1))
    other = RowOrder(store, 16, seed=1).batch(np.arange(order.rows)).tokens_BT
    assert not torch.equal(first, second)
    assert not torch.equal(first, other)


def test_permutations_are_frozen():
    """Runs written by older versions must resume: these numbers may never change."""
    assert shuffled(0, 0, 0, 8).tolist() == [0, 2, 1, 5, 4, 3, 6, 7]
    assert shuffled(2**31 - 1, 9, 1, 8).tolist() == [7, 4, 0, 6, 3, 2, 1, 5]
    assert sorted(shuffled(5, 5, 0, 1000).tolist()) == list(range(1000))
