"""Handles of every shape: they lie on the curve, go as far as they say, and write what the form shows."""

from __future__ import annotations

import pytest

from workbench.choices.choice import registry
from workbench.choices.schedules import (
    Cosine,
    InverseSqrt,
    OneCycle,
    Phases,
    Points,
    Schedule,
    Stages,
    WarmupHoldDecay,
    WarmupStableDecay,
)
from workbench.choices.schedules.handles import Pull, move

SHAPES: list[Schedule] = [
    *(registry("schedule")[kind]() for kind in registry("schedule")),  # type: ignore[misc]
    WarmupHoldDecay(warmup=0.2, hold=0.1, length=0.3),
    WarmupHoldDecay(warmup=0.0, hold=0.0, peak=-0.5, end=0.5, length=2.0),
    WarmupStableDecay(warmup=0.2, decay=0.1, length=0.3),
    WarmupStableDecay(warmup=0.0, decay=0.0, shape="cosine"),
    Cosine(warmup=0.3, start=64, end=8, length=0.9),
    InverseSqrt(over="steps", warmup=100, length=5000),
    OneCycle(rise=0.0),
    Stages(values=(3.0, 1.0, 2.0), until=(0.25, 0.5)),
    Stages(values=(0.7,), until=()),
    Points(places=(0.1, 0.5, 0.5, 0.9), values=(1.0, 0.5, 0.2, 0.0)),
    Phases(parts=("linear", "cosine", "stages"), peaks=(1.0, 0.5, 2.0), until=(0.8, 0.9)),
    Phases(
        parts=({"kind": "warmup_hold_decay", "warmup": 0.2, "hold": 0.3, "peak": 2.0, "end": 0.5}, "points"),
        peaks=(-1.0, 0.5), until=(3000,), length=4000, over="steps",
    ),
    Phases(parts=({"kind": "phases", "parts": ["linear", "linear"]}, "inverse_sqrt"), peaks=(1.0, 0.0)),
]  # fmt: skip
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.model_dump_json()[:60])


@every_shape
def test_handles_lie_on_the_curve(shape: Schedule) -> None:
    assert shape.handles(), "a shape that users may choose can be edited on its curve"
    names = [handle.name for handle in shape.handles()]
    assert len(set(names)) == len(names), "two of one name cannot be told apart by ear"
    for handle in shape.handles():
        x, y = handle.at
        # From the left, or at its place, or (at a jump) from the right.
        around = [shape.value(max(0.0, x - 1e-9)), shape.value(x), shape.value(x + 1e-9)]
        assert any(value == pytest.approx(y, rel=1e-6, abs=1e-6) for value in around), handle


@every_shape
def test_a_handle_goes_where_it_is_dragged_as_far_as_it_reaches(shape: Schedule) -> None:
    for index, handle in enumerate(shape.handles()):
        if handle.x is not None:
            assert handle.x.low is not None, "nothing lies before the run begins"
            high = 3 * handle.at[0] + 1 if handle.x.high is None else handle.x.high
            assert 0 <= handle.x.low <= handle.at[0] + 1e-12
            assert handle.at[0] <= high + 1e-12
            for x in (handle.x.low, (handle.x.low + high) / 2, high):
                found = shape.moved(index, x=x)
                same = next((other for other in found.handles() if other.name == handle.name), None)
                if same is not None:  # a cycle without a rise has no start
                    assert same.at[0] == pytest.approx(x, abs=1e-9), (handle, x)
            # Beyond the reach is its end, never an error.
            assert shape.moved(index, x=-1e6) == shape.moved(index, x=handle.x.low)
        if handle.y is not None:
            for y in (0.25, handle.at[1]):
                found = shape.moved(index, y=y)
                assert found.handles()[index].at[1] == pytest.approx(y, abs=1e-9), (handle, y)


@every_shape
def test_staying_changes_nothing(shape: Schedule) -> None:
    for index, handle in enumerate(shape.handles()):
        before, after = shape.model_dump_json(), shape.moved(index, *handle.at).model_dump_json()
        if "parts" not in before:  # stretched over a phase, numbers may differ in their last digits
            assert after == before
        assert shape.moved(index) == shape


@every_shape
def test_one_handle_more_leaves_the_curve_and_one_less_is_legal(shape: Schedule) -> None:
    longest = max(handle.at[0] for handle in shape.handles()) or 1.0
    more = shape.with_point(0.37 * longest)
    if more is not None:
        assert len(more.handles()) == len(shape.handles()) + 1
        assert type(more).model_validate(more.model_dump()) == more
        for i in range(101):
            assert more.value(i * longest / 100) == pytest.approx(shape.value(i * longest / 100))
    for index, handle in enumerate(shape.handles()):
        fewer = shape.without_point(index)
        assert (fewer is not None) == handle.removable
        if fewer is not None:
            assert type(fewer).model_validate(fewer.model_dump()) == fewer
            assert len(fewer.handles()) == len(shape.handles()) - 1


def test_what_a_move_writes() -> None:
    shape = WarmupHoldDecay(warmup=0.1, hold=0.2)
    start, plateau, end = shape.handles()
    fields = shape.model_dump(mode="json")
    move(plateau, fields, 0.5, 0.75)
    assert fields == {**shape.model_dump(mode="json"), "hold": 0.4, "peak": 0.75}
    assert shape.moved(0, x=0.9).warmup == 0.8, "the plateau keeps its length and must end in time"
    assert end.at == (1.0, 0.0)
    assert start.y is not None
    assert start.y.written(0.30000000000000004) == 0.3
    stable = WarmupStableDecay(warmup=0.1, decay=0.2)
    assert stable.moved(1, x=0.7).decay == 0.3
    assert Pull(("x",), origin=1.0, scale=-2.0).written(0.25) == 1.5


def test_phases_write_peaks_parts_and_boundaries() -> None:
    parts = ({"kind": "warmup_hold_decay", "warmup": 0.5, "end": 0.5}, "linear")
    shape = Phases(parts=parts, peaks=(4.0, 2.0), until=(0.5,))
    by_name = {handle.name: index for index, handle in enumerate(shape.handles())}
    assert shape.moved(by_name["phase 1, end of the warm-up"], x=0.1, y=3.0).model_dump() == {
        **shape.model_dump(),
        "peaks": (3.0, 2.0),
        "parts": ({**shape.parts[0].model_dump(), "warmup": 0.2}, shape.parts[1].model_dump()),
    }
    assert shape.moved(by_name["phase 1, end"], x=0.6, y=1.0).until == (0.6,)
    assert shape.moved(by_name["phase 1, end"], x=0.6, y=1.0).parts[0].end == 0.25
    assert shape.moved(by_name["phase 2, end"], x=0.8).length == 0.8
