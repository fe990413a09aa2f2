"""Describes the curve of a schedule to the page that draws it: samples, axes and points that can be dragged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.choices.schedules import Schedule

_SAMPLES = 120
# Room above the highest value, so that a point can be dragged up as well as down.
_HEADROOM = 1.25
# A logarithmic scale pays where values differ by this factor and the knob itself is thought of in factors.
_LOG_RATIO = 20.0


@dataclass(frozen=True)
class KnobScale:
    """The knob that a schedule moves.

    Attributes:
        low, high: its bounds, None where there is none.
        unit: of its values, empty for a pure number.
        log: it is thought of in factors.
        whole: its values are rounded to whole numbers.
    """

    low: float | None = None
    high: float | None = None
    unit: str = ""
    log: bool = False
    whole: bool = False


def shape_picture(shape: Schedule, knob: KnobScale, budget: tuple[float, str] | None = None) -> dict[str, Any]:
    """Return everything that a page needs to draw a schedule, JSON-able.

    Args:
        shape: the schedule.
        knob: the knob that it moves.
        budget: (amount, unit) of the run, where it is known.

    Returns:
        ``line``: (x, y) pairs along the curve, a jump as two pairs of (nearly) one x.
        ``points``: (x, y) of each point that can be dragged, of kind ``points`` alone; else empty.
        ``x``: ``low, high``, ``over`` (what lengths count), ``end`` of the run (None where it counts something else
        than the schedule) and ``budget``.
        ``y``: ``low, high, log, unit, whole`` and ``least``, the lowest value that a point may have.
    """
    corners = _corners(shape)
    end = _end(shape.over, budget)
    x_high = max(*corners, end) if end else 1.1 * max(corners) or 1.0
    line = _line(shape, corners, x_high)
    y_low, y_high, log = _reach([y for _, y in line], knob)
    fields: Any = shape
    points = (
        [list(pair) for pair in zip(fields.places, fields.values, strict=True)]
        if getattr(shape, "kind", "") == "points"
        else []
    )
    return {
        "line": line,
        "points": points,
        "x": {"low": 0.0, "high": x_high, "over": shape.over, "end": end, "budget": list(budget) if budget else None},
        "y": {"low": y_low, "high": y_high, "log": log, "unit": knob.unit, "whole": knob.whole,
              "least": y_low if knob.low is None else max(knob.low, y_low)},
    }  # fmt: skip


def _corners(shape: Schedule) -> list[float]:
    """Return where the curve may jump or end, read from the fields that say so in every shape."""
    ends = [getattr(shape, name, 0.0) for name in ("warmup", "rise", "length")]
    return [0.0, *ends, *getattr(shape, "until", ()), *getattr(shape, "places", ())]


def _end(over: str, budget: tuple[float, str] | None) -> float | None:
    if over == "budget":
        return 1.0
    # Steps of a run whose budget counts seconds: nobody knows before it ran.
    return budget[0] if budget and budget[1] == over else None


def _line(shape: Schedule, corners: Sequence[float], x_high: float) -> list[list[float]]:
    # Just before a jump the curve is still where it was.
    before = {corner - 1e-6 * x_high for corner in corners if corner > 0}
    places = {i * x_high / _SAMPLES for i in range(_SAMPLES + 1)} | set(corners) | before
    # Nine digits of x keep the two sides of a jump apart, five of y are finer than any screen.
    return [[float(f"{x:.9g}"), float(f"{shape.value(x):.5g}")] for x in sorted(places)]


def _reach(values: Sequence[float], knob: KnobScale) -> tuple[float, float, bool]:
    """Return (lowest, highest) value of the axis, and whether it is logarithmic."""
    low, high = min(values), max(values)
    # Values out of bounds are still shown (the knob's own error says what is wrong), there is just no room beyond.
    ceiling = math.inf if knob.high is None else max(knob.high, high)
    if knob.log and low > 0 and high >= _LOG_RATIO * low:
        floor = 0.0 if knob.low is None else min(knob.low, low)
        return max(low / 2, floor), min(high * 2, ceiling), True
    # From 0, so that heights compare as lengths. Where all is 0 or below, 0 is the top, unless there is nothing else.
    top = max(0.0, high) * _HEADROOM or (0.0 if low < 0 else 1.0)
    return min(0.0, low * _HEADROOM), min(top, ceiling), False
