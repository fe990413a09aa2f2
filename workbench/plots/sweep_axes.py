"""Ticks of an axis of a sweep's numbers: what was tried where that is short, else round numbers, none too near."""

from __future__ import annotations

import math
from collections.abc import Sequence

APART = 0.08
"""Share of an axis that two ticks keep between them: their labels would overlap."""
_MOST_VALUES = 8


def number_ticks(values: Sequence[float], log: bool, apart: float = APART) -> list[tuple[float, str]]:
    """Return places, which are decimal logarithms on a logarithmic axis, and labels, in order.

    Args:
        values: finite, and above 0 on a logarithmic axis.

    Example:
        >>> number_ticks([0.001, 0.1, 0.01], log=True)
        [(-3.0, '0.001'), (-2.0, '0.01'), (-1.0, '0.1')]
        >>> [text for _, text in number_ticks([0.000123456, 0.00912345], log=True)]
        ['0.0002', '0.0005', '0.001', '0.002', '0.005']
        >>> [text for _, text in number_ticks([1024, 1030, 4096], log=False)]
        ['1024', '4096']
    """
    known = sorted({float(value) for value in values})
    short = len(known) <= _MOST_VALUES and all(float(_text(value)) == value for value in known)
    shown = known if short else _round_numbers(known[0], known[-1], log)
    low, high, *places = [math.log10(value) if log else value for value in (known[0], known[-1], *shown)]
    return [(places[at], _text(shown[at])) for at in _downsampled(places, apart * (high - low))]


def _text(value: float) -> str:
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e7 else f"{value:.4g}"


def _round_numbers(low: float, high: float, log: bool) -> list[float]:
    """Within both ends; the one value where they are the same."""
    if low == high:
        return [low]
    if log:
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for digits in ((1,), (1, 2, 5)):
            found = [float(f"{digit}e{decade}") for decade in decades for digit in digits]
            if len(found := [value for value in found if low <= value <= high]) >= 3:
                return found
    least = (high - low) / 7
    size = 10.0 ** math.floor(math.log10(least))
    step = next(factor * size for factor in (1, 2, 5, 10) if factor * size >= least)
    # Without the tail of 3 * 0.1.
    return [float(f"{at * step:.10g}") for at in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _downsampled(places: Sequence[float], room: float) -> list[int]:
    """Return the ticks that stay: the first, the last, and those between that are near to neither."""
    last, kept = len(places) - 1, [0]
    for at in range(1, last):
        if places[at] - places[kept[-1]] >= room <= places[last] - places[at]:
            kept.append(at)
    return [*kept, last] if last else kept
