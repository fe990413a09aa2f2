"""Rise, plateau and each of the three falls, with parts left out."""

from __future__ import annotations

import math

import pytest

from workbench.choices.schedules.warmup_stable_decay import WarmupStableDecay

FALLS = {
    "linear": lambda f: 1 - f,
    "one_minus_sqrt": lambda f: 1 - math.sqrt(f),
    "cosine": lambda f: 0.5 * (1 + math.cos(math.pi * f)),
}


@pytest.mark.parametrize("shape", FALLS)
def test_corners_and_fall(shape: str) -> None:
    wsd = WarmupStableDecay(peak=2.0, end=0.5, warmup=0.1, decay=0.4, shape=shape)  # type: ignore[arg-type]
    assert wsd.value(0) == 0.0
    assert wsd.value(0.05) == pytest.approx(1.0)
    assert wsd.value(0.1) == wsd.value(0.35) == wsd.value(0.6) == 2.0
    for f in (0.01, 0.25, 0.5, 0.99):
        assert wsd.value(0.6 + 0.4 * f) == pytest.approx(0.5 + 1.5 * FALLS[shape](f))
    assert wsd.value(1.0) == wsd.value(9.0) == 0.5
    assert wsd.extremes() == (0.0, 2.0)


@pytest.mark.parametrize("shape", FALLS)
def test_parts_may_be_left_out(shape: str) -> None:
    no_plateau = WarmupStableDecay(warmup=0.5, decay=0.5, shape=shape)  # type: ignore[arg-type]
    assert no_plateau.value(0.5) == 1.0
    assert no_plateau.value(0.51) < 1.0
    no_fall = WarmupStableDecay(warmup=0.0, decay=0.0, end=0.1, shape=shape)  # type: ignore[arg-type]
    assert [no_fall.value(x) for x in (0.0, 0.999, 1.0)] == [1.0, 1.0, 0.1]
    assert no_fall.extremes() == (0.1, 1.0)


@pytest.mark.parametrize("shape", FALLS)
def test_lengths_may_count_steps(shape: str) -> None:
    wsd = WarmupStableDecay(warmup=10, decay=50, length=200, over="steps", shape=shape)  # type: ignore[arg-type]
    assert [wsd.value(x) for x in (5, 10, 150, 200, 1e9)] == [0.5, 1.0, 1.0, 0.0, 0.0]


def test_parts_must_fit() -> None:
    with pytest.raises(ValueError, match=r"warmup 0\.6 \+ decay 0\.5 must not exceed length 1"):
        WarmupStableDecay(warmup=0.6, decay=0.5)
