"""The free curve against numpy's interpolation, at jumps and beyond its ends."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.choices.schedules.points import Points


def test_lines_between_points_are_numpy_s() -> None:
    places, values = (0.05, 0.1, 0.4, 1.0), (0.2, 1.0, 0.5, -0.1)
    shape = Points(places=places, values=values)
    for x in np.linspace(0, 1.2, 241):
        assert shape.value(float(x)) == pytest.approx(np.interp(x, places, values))
    assert shape.extremes() == (-0.1, 1.0)


def test_two_points_at_one_place_are_a_jump() -> None:
    shape = Points(places=(0.0, 0.5, 0.5, 1.0), values=(1.0, 1.0, 0.1, 0.1))
    assert [shape.value(x) for x in (0.0, 0.499999, 0.5, 0.7, 1.0, 9.0)] == [
        1.0,
        pytest.approx(1.0),
        0.1,
        0.1,
        0.1,
        0.1,
    ]
    assert Points(places=(0.3,), values=(2.0,)).value(0.1) == 2.0


def test_a_knob_s_constant_scales_the_values() -> None:
    assert Points.around(0.003).values == (0.0003, 0.003, 0.0015, 0.0003)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"places": (0.0, 1.0), "values": (1.0,)}, "2 places need 2 `values`, got 1"),
        ({"places": (0.5, 0.2), "values": (1.0, 2.0)}, r"`places` must rise from 0 or more, got \[0.5, 0.2\]"),
        ({"places": (-0.1, 0.2), "values": (1.0, 2.0)}, "must rise from 0 or more"),
        ({"places": (), "values": ()}, "at least 1 item"),
        ({"places": tuple(range(65)), "values": (0.0,) * 65}, "at most 64"),
    ],
)
def test_points_that_do_not_fit(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Points(**fields)  # type: ignore[arg-type]
