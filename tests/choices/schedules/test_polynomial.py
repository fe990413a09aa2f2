"""Powers of what is left, at their corners."""

from __future__ import annotations

import pytest

from workbench.choices.schedules.polynomial import Polynomial


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0, 3.5])
def test_corners(power: float) -> None:
    shape = Polynomial(start=2.0, end=0.5, power=power, warmup=0.2, length=1.0)
    assert shape.value(0) == 0.0
    assert shape.value(0.1) == pytest.approx(1.0)
    assert shape.value(0.2) == pytest.approx(2.0)
    assert shape.value(0.6) == pytest.approx(0.5 + 1.5 * 0.5**power)
    assert shape.value(1.0) == shape.value(8.0) == 0.5
    assert shape.extremes() == (0.0, 2.0)


@pytest.mark.parametrize(
    ("fields", "message"), [({"warmup": 1.0}, "must be shorter than length 1"), ({"power": 0}, "greater than 0")]
)
def test_what_is_no_polynomial(fields: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Polynomial(**fields)  # type: ignore[arg-type]
