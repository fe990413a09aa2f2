"""Rows of several texts: shares, limits, purity, against a slow version."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from workbench.base.errors import DataError
from workbench.choices.data.mixture_order import BLOCK, MixtureOrder, Quota, Weights
from workbench.choices.data.order import RowOrder
from workbench.choices.data.tokens import TokenStore
from workbench.choices.execution.ranks import Ranks
from workbench.training.batches import StepShape, step_batch

LENGTH = 4


def constant(*weights: float) -> Weights:
    return lambda tokens_S: np.tile(weights, (len(tokens_S), 1))


def mixture(weights: Weights, epochs: list[float | None], rows: list[int], seed: int = 3) -> MixtureOrder:
    """Parts whose tokens say of which part they are: 1000 k + place."""
    stores = []
    for number, count in enumerate(rows):
        offsets = np.arange(0, count * LENGTH + 1, 2)
        stores.append(TokenStore((1000 * number + np.arange(offsets[-1])).astype(np.uint32), offsets))
    parts = {f"part{number}": RowOrder(store, LENGTH, seed) for number, store in enumerate(stores)}
    ids = np.concatenate([store.ids_N for store in stores])
    whole = TokenStore(ids, np.arange(0, len(ids) + 1, 2))
    return MixtureOrder(whole, parts, weights, epochs, seed)


def slow_rows(order: MixtureOrder, count: int) -> list[torch.Tensor]:
    """The first rows, one sample after the other, each part's own rows counted up."""
    next_of: Counter[int] = Counter()
    rows = []
    for sample in range(count):
        part = int(order.locate(np.array([sample]))[0][0])
        rows.append(order.parts[f"part{part}"].batch(np.array([next_of[part]])).tokens_BT[0])
        next_of[part] += 1
    return rows


def test_each_part_is_read_in_its_own_order_without_a_gap() -> None:
    order = mixture(constant(5, 3, 0.1), [None, None, None], [40, 7, 5])
    slow = torch.stack(slow_rows(order, 700))
    assert torch.equal(order.batch(np.arange(700)).tokens_BT, slow)
    # In any order of asking, and from another object: there is no state.
    samples = np.random.default_rng(0).permutation(700)
    again = mixture(constant(5, 3, 0.1), [None, None, None], [40, 7, 5])
    assert torch.equal(again.batch(samples).tokens_BT, slow[torch.from_numpy(samples)])
    assert torch.equal(again.batch(samples).samples_B, torch.from_numpy(samples))


def test_readers_share_the_rows_of_one() -> None:
    shape = StepShape(rows=48, length=LENGTH, part_rows=16)
    order = mixture(constant(2, 1), [None, None], [30, 9])
    alone = [part.tokens_BT for part in step_batch(order, 240, shape).parts]
    for readers in (2, 4):
        shared = [step_batch(order, 240, shape, Ranks(rank, readers)).parts for rank in range(readers)]
        for micro, whole in enumerate(alone):
            joined = torch.stack([parts[micro].tokens_BT for parts in shared], dim=1).reshape(whole.shape)
            assert torch.equal(joined, whole)


@pytest.mark.parametrize("weights", [(1, 1), (0.7, 0.2, 0.1), (1000, 1, 1), (3, 0, 1), (0.34, 0.33, 0.33)])
def test_shares_hold_over_any_window(weights: tuple[float, ...]) -> None:
    share_K = np.array(weights) / sum(weights)
    quota = Quota(constant(*weights), [None] * len(weights), LENGTH, seed=1)
    part_J = np.concatenate([quota.parts_of_block(block) for block in range(200)])
    is_part_KJ = part_J == np.arange(len(weights))[:, None]
    # From the start to the end of each block: the discrepancy of a golden walk.
    count_KS = np.cumsum(is_part_KJ, axis=1)[:, BLOCK - 1 :: BLOCK]
    expected_KS = share_K[:, None] * np.arange(1, 201) * BLOCK
    assert np.abs(count_KS - expected_KS).max() < 6
    # And in every window as long as a batch, wherever it begins.
    for window in (32, 64):
        sums_KW = np.lib.stride_tricks.sliding_window_view(is_part_KJ, window, axis=1).sum(axis=2)
        assert np.abs(sums_KW - share_K[:, None] * window).max() < 5
    assert not is_part_KJ[share_K == 0].any()
    for sample in (0, 1, 255, 256, 257, 5000):
        assert quota.before(sample).tolist() == np.bincount(part_J[:sample], minlength=len(weights)).tolist()


def test_moving_weights_follow_the_integral() -> None:
    def ramp(tokens_S: np.ndarray) -> np.ndarray:
        share_S = np.clip(tokens_S / (400_000 * LENGTH), 0, 1)
        return np.stack([1 - share_S, share_S], axis=1)

    quota = Quota(ramp, [None, None], LENGTH, seed=0)
    for sample in (40_000, 200_000, 400_000):
        x = sample / 400_000
        assert quota.before(sample)[1] == pytest.approx(400_000 * x * x / 2, abs=BLOCK)
    assert quota.before(800_000)[0] - quota.before(400_000)[0] < BLOCK
    # From the middle on without having looked at what is before.
    assert Quota(ramp, [None, None], LENGTH, seed=0).before(123_457).tolist() == quota.before(123_457).tolist()


def test_a_part_leaves_after_its_epochs_and_the_others_share_its_place() -> None:
    order = mixture(constant(6, 3, 1), [10, None, None], [100, 50, 30])
    part_B, local_B = order.locate(np.arange(6000))
    assert (part_B == 0).sum() == 1000, "ten epochs of a hundred rows"
    assert local_B[part_B == 0].tolist() == list(range(1000))
    after = int(np.flatnonzero(part_B == 0).max())
    assert after == pytest.approx(1000 / 0.6, abs=BLOCK)
    rest = np.bincount(part_B[after + 1 :], minlength=3) / (6000 - after - 1)
    assert rest == pytest.approx([0, 0.75, 0.25], abs=0.01)
    assert order.read(6000)["data.epochs/part0"] == 10
    assert order.read(6000)["data.tokens/part0"] == 1000 * LENGTH


def test_a_mixture_ends_when_every_part_is_used_up() -> None:
    order = mixture(constant(1, 1), [2, 1.5], [100, 60])
    part_B, _ = order.locate(np.arange(290))
    assert np.bincount(part_B).tolist() == [200, 90]
    assert order.batch(np.arange(290)).tokens_BT.shape == (290, LENGTH)
    for look in (lambda: order.batch(np.array([290])), lambda: order.read(291), lambda: order.batch(np.array([9000]))):
        with pytest.raises(DataError, match=r"used up after 1,160 tokens \(290 rows of 4\)"):
            look()


def test_weights_that_come_to_nothing_are_refused() -> None:
    quota = Quota(lambda tokens_S: np.where(tokens_S[:, None] > 5000, [0.0, 0.0], [1.0, 1.0]), [None, None], LENGTH, 0)
    with pytest.raises(DataError, match="sum to nothing after 5,120 tokens"):
        quota.before(5000)


def test_rows_of_another_length_follow_the_same_tokens() -> None:
    order = mixture(constant(3, 1), [None, None], [400, 100])
    short = order.of_length(2)
    assert short.sequence_length == 2
    for tokens in (1000, 4000):
        long_read, short_read = (each.read(each.first_sample(tokens)) for each in (order, short))
        assert long_read["data.tokens/part1"] == pytest.approx(short_read["data.tokens/part1"], abs=2 * LENGTH * 6)


def test_tokens_are_found_in_the_store_of_all_parts() -> None:
    order = mixture(constant(5, 3), [None, 3], [40, 7])
    samples = np.arange(300)
    places_BT = order.places(samples)
    tokens_BT = order.batch(samples).tokens_BT.numpy()
    assert np.array_equal(order.store.ids_N[places_BT], tokens_BT)
    for begin, epoch in ((6, 0), (6, 2), (164, 1), (186, 2)):
        passes = slice(epoch, epoch + 1)
        (rows,) = np.nonzero(((places_BT >= begin) & (places_BT < begin + 2)).any(axis=1))
        assert order.samples_of(begin, begin + 2, epoch).tolist() == rows[passes].tolist()
    assert order.samples_of(164, 166, 3).tolist() == [], "the part has left"
