"""Half a cosine against its formula, and at its corners."""

from __future__ import annotations

import math

import pytest

from workbench.choices.schedules.cosine import Cosine


def test_corners_and_middle() -> None:
    shape = Cosine(start=2.0, end=0.5, warmup=0.2, length=1.0)
    assert shape.value(0) == 0.0
    assert shape.value(0.1) == pytest.approx(1.0)
    assert shape.value(0.2) == pytest.approx(2.0)
    assert shape.value(0.6) == pytest.approx(1.25)
    assert shape.value(0.4) == pytest.approx(0.5 + 1.5 * (1 + math.cos(math.pi / 4)) / 2)
    assert shape.value(1.0) == shape.value(5.0) == pytest.approx(0.5)
    assert shape.extremes() == (0.0, 2.0)
    assert Cosine(start=2.0, end=0.5).extremes() == (0.5, 2.0)


def test_warmup_must_leave_room() -> None:
    with pytest.raises(ValueError, match=r"warmup 1 must be shorter than length 1"):
        Cosine(warmup=1.0)
