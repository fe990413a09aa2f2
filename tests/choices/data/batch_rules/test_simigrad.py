"""SimiGrad's direction, bounds and steps; and that it settles where theory says on gradients of known noise."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.base.errors import RecipeError
from workbench.choices.data.batch_rules import SimiGrad
from workbench.recipes.recipe import Recipe


def test_disagreement_grows_and_agreement_shrinks() -> None:
    rule = SimiGrad()
    assert rule.adapt(100.0, 0.79) == pytest.approx(110.0)
    assert rule.adapt(100.0, 0.8) == pytest.approx(90.0)
    assert rule.adapt(100.0, 0.95) == pytest.approx(90.0)
    assert rule.adapt(100.0, -1.0) == pytest.approx(110.0)


def test_small_batches_grow_by_less_than_a_row() -> None:
    rule, rows = SimiGrad(), 4.0
    for _ in range(3):
        rows = rule.adapt(rows, 0.0)
    assert rows == pytest.approx(4 * 1.1**3)
    assert rule.rows(32, rows) == rows


def test_bounds_hold() -> None:
    rule, rows = SimiGrad(lowest=8, highest=20), 16.0
    for _ in range(10):
        rows = rule.adapt(rows, 0.0)
    assert rows == 20.0
    for _ in range(20):
        rows = rule.adapt(rows, 1.0)
    assert rows == 8.0


def test_every_so_many_steps_from_the_first_on() -> None:
    assert [step for step in range(20) if SimiGrad(every=7).compares(step)] == [0, 7, 14]
    assert all(SimiGrad(every=1).compares(step) for step in range(5))


def test_it_settles_where_signal_and_noise_say() -> None:
    """Halves of n/2 samples, mean gradient of norm 1, noise of variance V per sample over all coordinates.

    E[g1 . g2] = 1 and E||g||^2 = 1 + 2V/n, so the cosine is about n / (n + 2V): .8 at n = 8V.
    """
    generator, coordinates, variance = np.random.default_rng(0), 2000, 12.0
    mean = np.full(coordinates, coordinates**-0.5)
    rule, rows, settled = SimiGrad(), 4.0, []
    for step in range(400):
        spread = (variance / coordinates / (rows / 2)) ** 0.5
        one, other = mean + spread * generator.standard_normal((2, coordinates))
        rows = rule.adapt(rows, float(one @ other / np.linalg.norm(one) / np.linalg.norm(other)))
        if step >= 100:
            settled.append(rows)
    assert np.exp(np.mean(np.log(settled))) == pytest.approx(8 * variance, rel=0.15)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": {"batch_size": {"kind": "linear", "start": 8, "end": 64}}}, "simigrad moves the batch itself"),
        ({"data": {"batch_size": 2048}}, "simigrad begins with 2048 rows, which must lie within"),
        ({"data": {"batch_rule": {"lowest": 64}}}, "simigrad begins with 32 rows"),
        (
            {"data": {"batch_rule": {"lowest": 64, "highest": 32}}},
            r"lowest: 64 rows exceed data\.batch_rule\.highest 32",
        ),
        ({"data": {"batch_size": 9}, "execution": {"micro_batch_size": 3}}, "3 rows have no equal halves"),
        ({"data": {"batch_rule": {"target": 1.0}}}, "less than 1"),
    ],
)
def test_what_cannot_be_adapted_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        Recipe().with_(data={"batch_rule": "simigrad"}).with_(**changes)
