"""The Pareto front: what no other point beats in both of two costs, and its picture."""

from __future__ import annotations

import math
from collections.abc import Sequence

ALIKE = 1.1
"""Seconds within this factor of one another are one cost: equal budgets differ by what the machine did beside."""


def around(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the range of an axis for one single value: a tenth of it to both sides; None for several, or none.

    Example:
        >>> around([90.0, 90.0]), around([0.0]), around([1.0, 2.0])
        ((81.0, 99.0), (-1.0, 1.0), None)
    """
    known = {value for value in values if math.isfinite(value)}
    if len(known) != 1:
        return None
    (value,) = known
    room = abs(value) / 10 or 1.0
    return value - room, value + room


def front(x: Sequence[float], y: Sequence[float]) -> list[int]:
    """Return places of the points that no other beats, ordered by x: none is as small in both and smaller in one.

    Points with a number that is not finite are on no front; of equal points all are.

    Example:
        >>> front([1.0, 2.0, 3.0, 2.0], [5.0, 3.0, 4.0, 3.0])
        [0, 1, 3]
    """
    known = sorted((x[at], y[at], at) for at in range(len(x)) if math.isfinite(x[at]) and math.isfinite(y[at]))
    found: list[tuple[float, float, int]] = []
    for point in known:
        # Sorted by x, then y: whoever lies on the front is below all before it, or equal to the last of them.
        if not found or point[1] < found[-1][1] or point[:2] == found[-1][:2]:
            found.append(point)
    return [at for _, _, at in found]


def front_of(cost: str, costs: Sequence[float], scores: Sequence[float]) -> list[int]:
    """Return :func:`front` of scores against a cost; where it is ``seconds``, all :data:`ALIKE`, the best scores alone.

    Example:
        >>> front_of("seconds", [15.0, 15.4], [3.1, 3.0]), front_of("seconds", [15.0, 30.8], [3.1, 3.0])
        ([1], [0, 1])
    """
    known = [each for each in costs if math.isfinite(each)]
    if cost == "seconds" and known and max(known) <= ALIKE * min(known):
        costs = [1.0 if math.isfinite(each) else each for each in costs]
    return front(costs, scores)
