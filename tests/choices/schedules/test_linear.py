"""The straight line at its corners."""

from __future__ import annotations

import pytest

from workbench.choices.schedules.linear import Linear


def test_corners() -> None:
    line = Linear(start=0.3, end=0.15, length=0.5)
    assert line.value(0) == 0.3
    assert line.value(0.25) == pytest.approx(0.225)
    assert line.value(0.5) == line.value(7.0) == pytest.approx(0.15)
    assert line.extremes() == (0.15, 0.3)
    assert Linear(start=0.0, end=1.0).extremes() == (0.0, 1.0)


def test_a_line_has_length() -> None:
    with pytest.raises(ValueError, match="greater than 0"):
        Linear(length=0)
