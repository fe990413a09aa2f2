"""Token stores: what was written comes back, and what does not fit is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.base.errors import DataError
from workbench.choices.data.store import StoreWriter, open_store

documents = st.lists(st.lists(st.integers(0, 69_999), min_size=1, max_size=20), min_size=1, max_size=20)


@settings(max_examples=50)
@given(batches=st.lists(documents, max_size=4))
def test_round_trip(tmp_path_factory, batches):
    folder = tmp_path_factory.mktemp("store")
    with StoreWriter(folder, "train", 70_000) as writer:
        for batch in batches:
            writer.add(np.concatenate([np.array(one) for one in batch]), np.array([len(one) for one in batch]))
    store = open_store(folder, "train", writer.dtype.str, writer.documents, writer.tokens)
    expected = [one for batch in batches for one in batch]
    assert (store.documents, store.tokens) == (len(expected), sum(map(len, expected)))
    for d, one in enumerate(expected):
        assert store.ids_N[store.offsets_D1[d] : store.offsets_D1[d + 1]].tolist() == one


@pytest.mark.parametrize(("size", "dtype"), [(64, "<u2"), (65_536, "<u2"), (65_537, "<u4")])
def test_width(tmp_path, size, dtype):
    with StoreWriter(tmp_path, "train", size) as writer:
        writer.add(np.array([size - 1], np.uint32), np.array([1]))
    assert writer.dtype.str == dtype
    assert open_store(tmp_path, "train", dtype, 1, 1).ids_N.tolist() == [size - 1]


def test_ids_cannot_be_written_through(tmp_path):
    with StoreWriter(tmp_path, "train", 64) as writer:
        writer.add(np.array([1, 2]), np.array([2]))
    with pytest.raises(ValueError, match="read-only"):
        open_store(tmp_path, "train", "<u2", 1, 2).ids_N[0] = 5


@pytest.mark.parametrize("offsets", [[0, 2], [0, 2, 2, 5], [0, 3, 2, 5], [1, 2, 3, 5], [0, 1, 2, 6]])
def test_offsets_that_do_not_fit(tmp_path, offsets):
    np.zeros(5, "<u2").tofile(tmp_path / "train.ids.bin")
    np.array(offsets, "<i8").tofile(tmp_path / "train.offsets.bin")
    with pytest.raises(DataError, match="damaged token cache"):
        open_store(tmp_path, "train", "<u2", 3, 5)
