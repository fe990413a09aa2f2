"""Steps are made of the samples they must be made of, in order, and a thread that fails says so."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.choices.architectures.flops import attention_span
from workbench.choices.data.order import RowOrder
from workbench.choices.data.tokens import Batch, TokenStore
from workbench.training.batches import Prefetch, step_batch


def rows_of(length: int = 8) -> RowOrder:
    offsets_D1 = np.arange(0, 331, 11)
    return RowOrder(TokenStore(np.arange(330, dtype=np.uint16), offsets_D1), length, seed=5)


@settings(max_examples=40, deadline=None)
@given(step=st.integers(0, 50), parts=st.sampled_from([1, 2, 3, 6]))
def test_a_step_is_its_samples_however_it_is_cut(step: int, parts: int) -> None:
    order = rows_of()
    cut = step_batch(order, step, 6, 6 // parts)
    whole = order.batch(np.arange(step * 6, step * 6 + 6))
    assert len(cut.parts) == parts
    for field, tensor in zip(Batch._fields, whole, strict=True):
        assert torch.equal(torch.cat([getattr(part, field) for part in cut.parts]), tensor)
    assert cut.tokens == 48
    assert cut.span == pytest.approx(attention_span(whole.documents_BT))


def test_steps_come_in_order_from_the_one_asked_for() -> None:
    batches = Prefetch(rows_of(), 4, 2, first_step=7)
    try:
        for step in range(7, 30):
            samples = torch.cat([part.samples_B for part in batches.next().parts])
            assert samples.tolist() == list(range(4 * step, 4 * step + 4))
    finally:
        batches.close()


def test_no_more_is_prepared_than_asked_for() -> None:
    made: list[int] = []

    class Counted(RowOrder):
        def batch(self, samples: np.ndarray) -> Batch:
            made.append(int(samples[0]))
            return super().batch(samples)

    source = rows_of()
    batches = Prefetch(Counted(source.store, 8, 5), 4, 4, 0, ahead=2)
    try:
        batches.next()
        time.sleep(0.3)
        # One handed out, two waiting, one in the thread's hands.
        assert len(made) <= 4
    finally:
        batches.close()
    assert not batches._thread.is_alive()


def test_an_error_in_the_thread_reaches_whoever_waits() -> None:
    class Broken(RowOrder):
        def batch(self, samples: np.ndarray) -> Batch:
            raise OSError(5, "the disk went away")

    source = rows_of()
    batches = Prefetch(Broken(source.store, 8, 5), 4, 4, 0)
    try:
        with pytest.raises(OSError, match="the disk went away"):
            batches.next()
    finally:
        batches.close()
