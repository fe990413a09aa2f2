"""The staircase at its boundaries."""

from __future__ import annotations

import pytest

from workbench.choices.schedules.stages import Stages


def test_a_stage_begins_at_its_boundary() -> None:
    shape = Stages(values=(3.0, 1.0, 2.0), until=(0.25, 0.5))
    assert [shape.value(x) for x in (0, 0.249, 0.25, 0.499, 0.5, 9.0)] == [3.0, 3.0, 1.0, 1.0, 2.0, 2.0]
    assert shape.extremes() == (1.0, 3.0)
    assert Stages(values=(0.7,), until=()).value(0.3) == 0.7


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"values": (1.0, 2.0), "until": ()}, "2 values need 1 boundaries in `until`, got 0"),
        ({"values": (1.0, 2.0, 3.0), "until": (0.5, 0.2)}, r"`until` must rise, got \[0.5, 0.2\]"),
        ({"values": ()}, "at least 1 item"),
    ],
)
def test_stages_that_do_not_fit(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Stages(**fields)  # type: ignore[arg-type]
