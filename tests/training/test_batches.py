"""Steps are made of the samples they must be made of, in order, and a thread that fails says so."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.choices.architectures.flops import attention_span
from workbench.choices.data.order import RowOrder
from workbench.choices.data.tokens import Batch, TokenStore
from workbench.training.batches import Prefetch, StepShape, step_batch


def rows_of(length: int = 8, seed: int = 5) -> RowOrder:
    offsets_D1 = np.arange(0, 331, 11)
    return RowOrder(TokenStore(np.arange(330, dtype=np.uint16), offsets_D1), length, seed=seed)


def samples_of(batch: object) -> list[int]:
    return torch.cat([part.samples_B for part in batch.parts]).tolist()  # type: ignore[attr-defined]


@settings(max_examples=40)
@given(step=st.integers(0, 50), parts=st.sampled_from([1, 2, 3, 6]))
def test_a_step_is_its_samples_however_it_is_cut(step: int, parts: int) -> None:
    order = rows_of()
    cut = step_batch(order, 6 * step, StepShape(6, 8, 6 // parts))
    whole = order.batch(np.arange(step * 6, step * 6 + 6))
    assert len(cut.parts) == parts
    for field, tensor in zip(Batch._fields, whole, strict=True):
        assert torch.equal(torch.cat([getattr(part, field) for part in cut.parts]), tensor)
    assert cut.tokens == 48
    assert cut.span == pytest.approx(attention_span(whole.documents_BT))


def test_at_one_shape_step_s_has_the_samples_from_s_times_the_batch_on() -> None:
    """From whichever step a run begins: what the order was before batches could change their shape."""
    batches, shape = Prefetch(rows_of()), StepShape(4, 8, 2)
    try:
        for step in range(7, 30):
            assert samples_of(batches.next(step * 32, shape)) == list(range(4 * step, 4 * step + 4))
    finally:
        batches.close()


@settings(max_examples=25)
@given(
    shapes=st.lists(
        st.builds(lambda part, count, length: StepShape(part * count, length, part),
                  st.integers(1, 3), st.integers(1, 3), st.sampled_from([8, 16, 24])),
        min_size=1, max_size=12,
    ),
    resume=st.integers(0, 11),
)  # fmt: skip
def test_changing_shapes_depend_on_the_tokens_alone_and_repeat_no_sample(shapes: list[StepShape], resume: int) -> None:
    """Samples of one length never come twice, and a run that resumes anywhere goes on with the very same rows."""
    straight, resumed = Prefetch(rows_of()), Prefetch(rows_of())
    tokens, seen = 0, {length: [-1] for length in (8, 16, 24)}
    try:
        for step, shape in enumerate(shapes):
            batch = straight.next(tokens, shape)
            assert [part.tokens_BT.shape for part in batch.parts] == [(shape.part_rows, shape.length)] * len(
                batch.parts
            )
            samples = samples_of(batch)
            assert samples == list(range(-(-tokens // shape.length), -(-tokens // shape.length) + shape.rows))
            assert samples[0] > seen[shape.length][-1]
            seen[shape.length] += samples
            if step >= resume:
                again = resumed.next(tokens, shape)
                assert all(torch.equal(a.tokens_BT, b.tokens_BT) for a, b in zip(batch.parts, again.parts, strict=True))
            assert batch.tokens == sum(part.tokens_BT.numel() for part in batch.parts)
            tokens += batch.tokens
    finally:
        straight.close()
        resumed.close()


def test_workers_own_disjoint_shards_reshuffled_every_epoch() -> None:
    """What LANS asks of its data: over an epoch, R ranks see every row once between them, in a new order each time."""
    order, ranks = rows_of(), 4
    epochs = []
    for epoch in (0, 1):
        samples = np.arange(epoch * order.rows, (epoch + 1) * order.rows)
        shards = [order.batch(samples[rank::ranks]).tokens_BT for rank in range(ranks)]
        whole = torch.cat(shards)
        assert len(whole.flatten().unique()) == order.rows * 8, "no token is read twice in an epoch"
        epochs.append(whole)
    assert not torch.equal(*epochs)


def test_no_more_is_prepared_than_asked_for() -> None:
    made: list[int] = []

    class Counted(RowOrder):
        def batch(self, samples: np.ndarray) -> Batch:
            made.append(int(samples[0]))
            return super().batch(samples)

    source, before = rows_of(), threading.active_count()
    batches, shape = Prefetch(Counted(source.store, 8, 5), ahead=2), StepShape(4, 8, 4)
    try:
        batches.next(0, shape)
        time.sleep(0.3)
        # One handed out, two waiting, one in the thread's hands.
        assert len(made) <= 4
        # The rest follows from what is ready: nothing is made twice while the shape stays.
        for step in range(1, 6):
            batches.next(step * 32, shape)
        assert made == sorted(set(made))
    finally:
        batches.close()
    assert threading.active_count() == before


def test_a_change_of_shape_waits_for_no_timeout() -> None:
    batches, began = Prefetch(rows_of()), time.perf_counter()
    try:
        for step in range(40):
            batches.next(step * 48, StepShape(3 + step % 2, 8, 1))
    finally:
        batches.close()
    # 40 threads end and begin in milliseconds; each would wait 0.1 s if it had to notice by itself.
    assert time.perf_counter() - began < 2


def test_an_error_in_the_thread_reaches_whoever_waits() -> None:
    class Broken(RowOrder):
        def batch(self, samples: np.ndarray) -> Batch:
            raise OSError(5, "the disk went away")

    source = rows_of()
    batches = Prefetch(Broken(source.store, 8, 5))
    try:
        with pytest.raises(OSError, match="the disk went away"):
            batches.next(0, StepShape(4, 8, 4))
    finally:
        batches.close()
