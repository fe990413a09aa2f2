"""What can be moved on a schedule's curve, as data: a page drags it, and every move writes fields of the schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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


def move(handle: Handle, fields: dict[str, Any], x: float | None, y: float | None) -> None:
    """Write into a schedule's fields what moving one of its handles changes.

    Args:
        x, y: where to, in the curve's units; None leaves that direction. What cannot move is left as well.
    """
    for direction, place in ((handle.x, x), (handle.y, y)):
        if direction is None or place is None:
            continue
        holder: Any = fields
        for step in direction.path[:-1]:
            holder = holder[step]
        holder[direction.path[-1]] = direction.written(place)


def without(values: Sequence[float], index: int) -> tuple[float, ...]:
    """``values`` without the entry at ``index``."""
    return (*values[:index], *values[index + 1 :])


def with_inserted(values: Sequence[float], index: int, value: float) -> tuple[float, ...]:
    """``values`` with ``value`` before the entry at ``index``."""
    return (*values[:index], value, *values[index:])
