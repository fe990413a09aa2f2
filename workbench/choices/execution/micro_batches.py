"""Sizes of micro-batches."""

from __future__ import annotations

import math


def divisors(*rows: int) -> list[int]:
    """Return row counts that divide every one of these batches, ascending.

    Graphs are compiled for one shape, and equal parts let a mean of means be the mean.

    Example:
        >>> divisors(12), divisors(12, 8)
        ([1, 2, 3, 4, 6, 12], [1, 2, 4])
    """
    whole = math.gcd(*rows)
    return [part for part in range(1, whole + 1) if whole % part == 0]
