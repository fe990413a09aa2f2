"""What a page gets to draw a schedule: the curve with its jumps, ranges of axes."""

from __future__ import annotations

import json

import pytest

from workbench.choices.choice import registry
from workbench.choices.schedules import Linear, Schedule, Stages, WarmupHoldDecay
from workbench.plots.shape import KnobScale, shape_picture


@pytest.mark.parametrize("kind", sorted(registry("schedule")))
def test_every_schedule_is_drawn_within_its_axes(kind: str) -> None:
    shape = registry("schedule")[kind]()
    assert isinstance(shape, Schedule)
    picture = shape_picture(shape, KnobScale(), (200.0, "steps"))
    assert json.loads(json.dumps(picture)) == picture
    places = [x for x, _ in picture["line"]]
    assert places == sorted(places)
    assert (places[0], places[-1]) == (0.0, 1.0)
    low, high = picture["y"]["low"], picture["y"]["high"]
    for x, y in picture["line"]:
        assert y == pytest.approx(shape.value(x), rel=1e-4, abs=1e-4)
        assert low <= y <= high
    assert bool(picture["points"]) == (kind == "points"), "only points can be dragged"


def test_a_jump_is_a_jump() -> None:
    picture = shape_picture(Stages(values=(1.0, 0.1), until=(0.3,)), KnobScale())
    around = [(x, y) for x, y in picture["line"] if 0.299 < x < 0.301]
    assert [y for _, y in around] == [1.0, 0.1]
    assert around[1][0] - around[0][0] < 1e-5


def test_the_end_of_the_run_is_known_where_it_is_counted() -> None:
    steps = WarmupHoldDecay(over="steps", warmup=50, length=400)
    assert shape_picture(steps, KnobScale(), (1000.0, "steps"))["x"] == {
        "low": 0.0, "high": 1000.0, "over": "steps", "end": 1000.0, "budget": [1000.0, "steps"],
    }  # fmt: skip
    short = shape_picture(steps, KnobScale(), (100.0, "steps"))["x"]
    assert (short["end"], short["high"]) == (100.0, 400.0), "what lies beyond the run's end is shown as well"
    other = shape_picture(steps, KnobScale(), (60.0, "seconds"))["x"]
    assert other["end"] is None
    assert other["high"] == pytest.approx(440.0)
    assert shape_picture(Linear(length=1.5), KnobScale())["x"]["high"] == 1.5


def test_values_have_room_to_be_dragged_but_not_beyond_the_knob_s_bounds() -> None:
    picture = shape_picture(Linear(start=0.3, end=0.1), KnobScale(0.0, 1.0))
    assert picture["y"]["high"] == pytest.approx(0.375)
    assert shape_picture(Linear(start=0.9, end=0.1), KnobScale(0.0, 1.0))["y"]["high"] == 1.0
    assert shape_picture(Linear(start=3.0, end=0.1), KnobScale(0.0, 1.0))["y"]["high"] == 3.0, "wrong, and still seen"
    assert shape_picture(Linear(start=0.0, end=0.0), KnobScale())["y"]["high"] == 1.0
    below = shape_picture(Linear(start=-1.0, end=-2.0), KnobScale())["y"]
    assert (below["low"], below["high"]) == (-2.5, 0.0)


def test_batches_and_lengths_are_drawn_in_factors() -> None:
    rows = KnobScale(1, 1 << 20, "rows", log=True, whole=True)
    picture = shape_picture(Linear(start=32, end=1024), rows)
    assert picture["y"] == {"low": 16.0, "high": 2048.0, "log": True, "unit": "rows", "whole": True, "least": 16.0}
    assert shape_picture(Linear(start=32, end=64), rows)["y"]["low"] == 0.0, "a factor of two needs no logarithm"
    assert shape_picture(Linear(start=1, end=64), rows)["y"]["low"] == 1, "there is no half row"
