"""Compute where stages begin, for all methods that have them."""

from __future__ import annotations

from collections.abc import Sequence


def starts_of(shares: Sequence[float]) -> tuple[float, ...]:
    """Return share of the budget at which each stage begins, for stages of these relative lengths.

    Args:
        shares: relative length of each stage, any positive unit.

    Example:
        >>> starts_of((50, 70, 280))
        (0.0, 0.125, 0.3)
    """
    total = sum(shares)
    # From sums of the given numbers: adding up quotients would move boundaries by rounding.
    return tuple(sum(shares[:stage]) / total for stage in range(len(shares)))
