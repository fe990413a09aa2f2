"""Ticks of a sweep's axes, whatever numbers were drawn."""

from __future__ import annotations

import itertools
import random

import pytest

from workbench.plots.sweep_axes import APART, number_ticks


@pytest.mark.parametrize(("values", "labels"), [
    ([3], ["3"]),
    ([0.123456789], ["0.1235"]),
    ([16384, 1048576], ["16384", "1048576"]),
    (list(range(1, 13)), ["2", "4", "6", "8", "10", "12"]),
    ([0.0111111, 0.0999999], ["0.02", "0.04", "0.06", "0.08"]),
])  # fmt: skip
def test_values_that_are_few_and_short_are_ticks_else_round_numbers(values: list[float], labels: list[str]) -> None:
    assert [text for _, text in number_ticks(values, log=False)] == labels


@pytest.mark.parametrize("log", [False, True])
def test_ticks_lie_among_the_values_and_their_labels_differ(log: bool) -> None:
    draw = random.Random(0)
    for _ in range(300):
        values = [10 ** draw.uniform(-5, draw.choice((-4.9, -3, 3))) for _ in range(draw.randrange(2, 20))]
        low, high = number_ticks([float(f"{min(values):.3g}"), float(f"{max(values):.3g}")], log=log)
        places, labels = zip(*number_ticks(values, log=log), strict=True)
        assert len(set(labels)) == len(labels) >= 2
        assert low[0] - 0.01 * abs(low[0]) <= places[0] < places[-1] <= high[0] + 0.01 * abs(high[0])
        assert all(there - here >= APART * (places[-1] - places[0]) for here, there in itertools.pairwise(places))
