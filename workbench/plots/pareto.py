"""The Pareto front: what no other point beats in both of two costs, and its picture."""

from __future__ import annotations

import math
from collections.abc import Sequence


def front(x: Sequence[float], y: Sequence[float]) -> list[int]:
    """Places of the points that no other beats: none is at most as large in both and smaller in one; ordered by x.

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
