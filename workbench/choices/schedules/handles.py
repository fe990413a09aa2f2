"""What can be moved on a schedule's curve, as data: a page drags it, and every move writes fields of the schedule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.choices.schedules.schedule import Schedule

NARROWEST = 0.01
"""Where two places must not meet (a fall of no length), they stay this share of their distance apart."""


@dataclass(frozen=True)
class Pull:
    """One direction in which a handle moves.

    Attributes:
        path: of the number it writes, from the schedule down: ``("warmup",)``, ``("values", 1)``.
        low, high: how far the handle goes, in the curve's own units; None where the shape sets no end.
        origin, scale: the number is (place - origin) * scale; a plateau's length counts from the end of the warm-up.
    """

    path: tuple[str | int, ...]
    low: float | None = None
    high: float | None = None
    origin: float = 0.0
    scale: float = 1.0

    def written(self, place: float) -> float:
        """The number for a handle at ``place`` (x or y of the curve), held within the reach."""
        within = max(place, place if self.low is None else self.low)
        within = min(within, within if self.high is None else self.high)
        # Twelve digits: 0.3 - 0.1 is to stand as 0.2 in the form and in the recipe's JSON. Nor is there a -0.
        return float(f"{(within - self.origin) * self.scale:.12g}") + 0.0


@dataclass(frozen=True)
class Handle:
    """A place of a curve that can be moved.

    Attributes:
        name: what it is, in words.
        at: (x, y): a length as ``over`` counts it, and a value of the knob.
        x, y: what moving it writes; None in a direction in which it cannot move.
        removable: the shape can do without it.
    """

    name: str
    at: tuple[float, float]
    x: Pull | None = None
    y: Pull | None = None
    removable: bool = False


def pull(name: str, *index: int, low: float | None = None, high: float | None = None) -> Pull:
    """A pull on a field that holds the place itself, or on one entry of it.

    Example:
        >>> pull("warmup", low=0.0, high=0.5).written(0.7)
        0.5
    """
    return Pull((name, *index), low, high)


def fields_moved(schedule: Schedule, handle: Handle, x: float | None, y: float | None) -> dict[str, Any]:
    """The schedule's fields, as JSON has them, once ``handle`` was moved.

    Args:
        schedule: whose handle it is.
        handle: one of ``schedule.handles()``.
        x, y: where to, in the curve's units; None leaves that direction. What cannot move is left as well.
    """
    fields = schedule.model_dump(mode="json")
    for direction, place in ((handle.x, x), (handle.y, y)):
        if direction is None or place is None:
            continue
        holder: Any = fields
        for step in direction.path[:-1]:
            holder = holder[step]
        holder[direction.path[-1]] = direction.written(place)
    return fields


def handles_of_phase(
    part: Schedule, index: int, peak: float, reach: tuple[float, float], end: Pull
) -> Iterator[Handle]:
    """The handles of one phase, from those of its part.

    The part's own lengths are stretched over the phase. Its highest places move the phase's peak, since two numbers
    for one height would be one too many; all others move the part.

    Args:
        part: the shape of the phase, its lengths shares of it.
        index: of the phase, from 0.
        peak: factor of the phase.
        reach: where it begins and ends.
        end: what moves its end.
    """
    inner, words = part.handles(), f"phase {index + 1}"
    top = max((abs(handle.at[1]) for handle in inner), default=0.0)
    begin, length = reach[0], reach[1] - reach[0]
    for handle in inner:
        x, y = handle.x and _within(handle.x, index, begin, length, 1.0), None
        if handle.y is not None and abs(handle.at[1]) == top > 0:
            y = Pull(("peaks", index), scale=1.0 / handle.at[1])
        elif handle.y is not None and peak:
            y = _within(handle.y, index, 0.0, peak, None)
        at = begin + length * handle.at[0], peak * handle.at[1]
        yield Handle(f"{words}, {handle.name}", at, end if handle.at[0] == 1.0 else x, y)
    if not any(handle.at[0] == 1.0 for handle in inner):
        yield Handle(f"{words}, end", (reach[1], peak * part.value(1.0)), end)


def _within(inner: Pull, index: int, begin: float, length: float, most: float | None) -> Pull:
    """A part's pull in the units of the phases: places are stretched by ``length`` and begin at ``begin``."""

    def stretched(place: float | None) -> float | None:
        return None if place is None else begin + length * place

    # A part may outlive its phase (its length is above 1), its handles may not: they would lie on the next phase.
    high = most if inner.high is None or most is None else min(inner.high, most)
    return Pull(
        ("parts", index, *inner.path),
        stretched(inner.low),
        stretched(high),
        begin + length * inner.origin,
        inner.scale / length,
    )


def without(values: Sequence[float], index: int) -> tuple[float, ...]:
    """``values`` without the entry at ``index``."""
    return (*values[:index], *values[index + 1 :])


def with_inserted(values: Sequence[float], index: int, value: float) -> tuple[float, ...]:
    """``values`` with ``value`` before the entry at ``index``."""
    return (*values[:index], value, *values[index:])
