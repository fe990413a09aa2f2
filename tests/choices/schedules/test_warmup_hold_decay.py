"""Warm-up, plateau and decay at every corner, the edges of their lengths included."""

from __future__ import annotations

import pytest

from workbench.choices.schedules.warmup_hold_decay import WarmupHoldDecay


def test_corners() -> None:
    shape = WarmupHoldDecay(peak=2.0, end=0.5, warmup=0.4, hold=0.2, length=1.0)
    assert shape.value(0) == 0.0
    assert shape.value(0.2) == pytest.approx(1.0)
    assert shape.value(0.4) == shape.value(0.5) == shape.value(0.4 + 0.2) == 2.0
    assert shape.value(0.8) == pytest.approx(1.25)
    assert shape.value(1.0) == shape.value(3.0) == pytest.approx(0.5)
    assert shape.extremes() == (0.0, 2.0)


def test_without_warmup_it_starts_at_the_peak() -> None:
    shape = WarmupHoldDecay(peak=3.0, end=1.0, warmup=0.0)
    assert shape.value(0) == 3.0
    assert shape.extremes() == (1.0, 3.0)


def test_plateau_to_the_very_end_then_drops() -> None:
    shape = WarmupHoldDecay(peak=1.0, end=0.0, warmup=0.5, hold=0.5)
    assert shape.value(1.0) == 1.0
    assert shape.value(1.001) == 0.0


def test_parts_must_fit() -> None:
    with pytest.raises(ValueError, match=r"warmup 0\.7 \+ hold 0\.5 must not exceed length 1"):
        WarmupHoldDecay(warmup=0.7, hold=0.5)
