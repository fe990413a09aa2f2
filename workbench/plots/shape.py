"""A schedule's shape as a page draws and edits it: its curve, the places that can be moved, and the ranges of axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.choices.schedules import Handle, Schedule

PLACES = 120
"""Evenly spaced places at which a curve is evaluated, besides its handles: one for every third pixel or so."""
# Room above the highest value, so that it can be dragged up as well as down.
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
    """Everything that a page needs to draw a schedule and to let its handles be moved, JSON-able.

    Args:
        shape: the schedule.
        knob: what it moves.
        budget: (amount, unit) of the run, where it is known.

    Returns:
        ``line``: (x, y) pairs along the curve, a jump as two pairs of (nearly) one x.
        ``handles``: name, place and reach of each; ``moves`` is ``x``, ``y`` or ``xy``.
        ``x``: ``low, high``, ``over`` (what lengths count), ``end`` of the run (None where it counts something else
        than the schedule) and ``budget``.
        ``y``: ``low, high, log, unit`` and ``grid``: values move by ``sizes`` (1, 2, 3, 4, 6, 8, 12, ...), ``whole``
        numbers or ``any``.
        ``growable``: handles can be added.
    """
    handles = shape.handles()
    end = _end(shape.over, budget)
    longest = max((handle.at[0] for handle in handles), default=0.0)
    x_high = max(longest, end) if end else 1.1 * longest or 1.0
    line = _line(shape, handles, x_high)
    y_low, y_high, log = _reach([y for _, y in line], knob)
    return {
        "line": line,
        "handles": [_place(handle, x_high, (y_low, y_high), knob) for handle in handles],
        "x": {"low": 0.0, "high": x_high, "over": shape.over, "end": end, "budget": list(budget) if budget else None},
        "y": {"low": y_low, "high": y_high, "log": log, "unit": knob.unit, "grid": _grid(knob)},
        "growable": shape.with_point(x_high / 2) is not None,
    }


def _end(over: str, budget: tuple[float, str] | None) -> float | None:
    if over == "budget":
        return 1.0
    # Steps of a run whose budget counts seconds: nobody knows before it ran.
    return budget[0] if budget and budget[1] == over else None


def _grid(knob: KnobScale) -> str:
    # Lengths and batches come in powers of two and their halves; nobody wants 117 rows because a mouse stopped there.
    return ("sizes" if knob.log else "whole") if knob.whole else "any"


def _line(shape: Schedule, handles: Sequence[Handle], x_high: float) -> list[list[float]]:
    # A jump lies at a handle; just before it the curve is still where it was.
    before = [handle.at[0] - 1e-6 * x_high for handle in handles if handle.at[0] > 0]
    places = {i * x_high / PLACES for i in range(PLACES + 1)} | {handle.at[0] for handle in handles} | set(before)
    # Nine digits of x keep the two sides of a jump apart, five of y are finer than any screen.
    return [[float(f"{x:.9g}"), float(f"{shape.value(x):.5g}")] for x in sorted(places)]


def _reach(values: Sequence[float], knob: KnobScale) -> tuple[float, float, bool]:
    """(lowest, highest) value of the axis, and whether it is logarithmic."""
    low, high = min(values), max(values)
    # Values out of bounds are still shown (the knob's own error says what is wrong), there is just no room beyond.
    ceiling = math.inf if knob.high is None else max(knob.high, high)
    if knob.log and low > 0 and high >= _LOG_RATIO * low:
        floor = 0.0 if knob.low is None else min(knob.low, low)
        return max(low / 2, floor), min(high * 2, ceiling), True
    # From 0, so that heights compare as lengths. Where all is 0 or below, 0 is the top, unless there is nothing else.
    top = max(0.0, high) * _HEADROOM or (0.0 if low < 0 else 1.0)
    return min(0.0, low * _HEADROOM), min(top, ceiling), False


def _place(handle: Handle, x_high: float, y_range: tuple[float, float], knob: KnobScale) -> dict[str, Any]:
    x, y = handle.x, handle.y
    least = y_range[0] if knob.low is None else max(knob.low, y_range[0])
    return {
        "name": handle.name,
        "x": handle.at[0],
        "y": handle.at[1],
        "moves": ("x" if x else "") + ("y" if y else ""),
        "x_reach": [x.low or 0.0, x_high if x.high is None else min(x.high, x_high)] if x else None,
        "y_reach": [least, y_range[1]] if y else None,
        "removable": handle.removable,
    }
