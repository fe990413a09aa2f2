"""One over the square root of time, at its corners."""

from __future__ import annotations

import pytest

from workbench.choices.schedules.inverse_sqrt import InverseSqrt


def test_corners() -> None:
    shape = InverseSqrt(peak=3.0, warmup=100, length=10_000, over="steps")
    assert [shape.value(x) for x in (0, 50, 100, 400, 10_000, 1e9)] == pytest.approx([0, 1.5, 3, 1.5, 0.3, 0.3])
    assert shape.extremes() == (0.0, 3.0)
    assert InverseSqrt(peak=-3.0).extremes() == (-3.0, 0.0)


def test_it_is_the_transformers_own_formula() -> None:
    """lr = D^-.5 min(n^-.5, n warmup^-1.5), whose peak is (D warmup)^-.5."""
    width, warmup = 512, 4000
    shape = InverseSqrt(peak=(width * warmup) ** -0.5, warmup=warmup, length=1e9, over="steps")
    for step in (1, 17, 3999, 4000, 4001, 100_000):
        assert shape.value(step) == pytest.approx(width**-0.5 * min(step**-0.5, step * warmup**-1.5))


def test_warm_up_must_fit() -> None:
    with pytest.raises(ValueError, match=r"warmup 2 must not exceed length 1"):
        InverseSqrt(warmup=2.0)
    with pytest.raises(ValueError, match="greater than 0"):
        InverseSqrt(warmup=0.0)
