"""Losses to compare curves with, baselines and a target, and which of them a plot shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from workbench.store.view import RunView

NEAR = 0.35
"""A baseline further from the curves than this share of their span stays outside the plot, where it would squeeze the
curves; the legend names it."""
_AIR = 0.06
_TOO_FEW, _FEW, _TRIMMED, _FENCE, _FAR_OUT, _RECENT, _SAMPLED = 5, 8, 0.02, 1.5, 3.0, 5, 2000
"""As in the page (``scales.js``), whose plots show the same range."""


class Level(NamedTuple):
    """A horizontal line: its ``name`` as in :data:`~..quantities.LEVEL_DASHES`, and its loss in nats."""

    name: str
    nats: float


def levels_of(views: Sequence[RunView], target: float | None = None) -> list[Level]:
    """Return the lines of some runs, ascending; runs on one text share theirs."""
    # Rounding merges levels that differ by float noise.
    found = {(name, round(nats, 3)) for view in views for name, nats in view.references.levels.items()}
    found |= {("target", target)} if target is not None else set()
    return [Level(*each) for each in sorted(found, key=lambda level: level[1])]


def robust_range(values_N: np.ndarray, log: bool = False) -> tuple[float, float] | None:
    """Return range of nearly all values: single spikes, which would squeeze the rest, are left out, the present is not.

    The middle 96 percent, then every value within one and a half times their span of them (Tukey's fence, 1977), then
    the median of the latest five. Of fewer than eight values those alone are left out that are far out (three spans);
    fewer than five say nothing of what is usual, and are all shown.

    Args:
        values_N: in their order, (N,); what is not finite counts for nothing.
        log: on a logarithmic axis.

    Returns:
        None without values.

    Example:
        >>> robust_range(np.array([7.0] + [6.5, 6.4, 6.3] * 5 + [14.6] + [6.2] * 3))
        (6.2, 7.0)
    """
    flat = np.asarray(values_N, dtype=np.float64)
    flat = flat[np.isfinite(flat) & ((flat > 0) | (not log))]
    if not len(flat):
        return None
    scaled = np.log(flat) if log else flat
    low, high = float(scaled.min()), float(scaled.max())
    if len(scaled) >= _TOO_FEW:
        ordered = np.sort(scaled[:: -(-len(scaled) // _SAMPLED)])
        trimmed = max(1, int(_TRIMMED * len(ordered)))
        inner_low, inner_high = float(ordered[trimmed]), float(ordered[-1 - trimmed])
        reach = (_FENCE if len(scaled) >= _FEW else _FAR_OUT) * (inner_high - inner_low)
        near = scaled[(scaled >= inner_low - reach) & (scaled <= inner_high + reach)]
        recent = float(np.sort(scaled[-_RECENT:])[_RECENT // 2])
        low, high = min(float(near.min()), recent), max(float(near.max()), recent)
    return (float(np.exp(low)), float(np.exp(high))) if log else (low, high)


def loss_range(losses: Iterable[np.ndarray], levels: Sequence[Level], log: bool = False) -> tuple[float, float] | None:
    """Return lowest and highest loss of a plot: curves without their spikes, a target, and the baselines that are near.

    Args:
        losses: of each curve, any shape (N,), in nats.
        levels: the lines.
        log: whether the axis is logarithmic.

    Returns:
        None where there is nothing to draw.

    Example:
        >>> low, high = loss_range([np.array([9.0, 5.0])], [Level("neighbours", 1.2), Level("word frequencies", 6.4)])
        >>> round(low, 2), round(high, 2)
        (4.76, 9.24)
    """
    ranges = [found for found in (robust_range(each, log) for each in losses) if found is not None]
    if not ranges:
        return None
    scale, back = (np.log, np.exp) if log else (np.asarray, np.asarray)
    low, high = float(scale(min(low for low, _ in ranges))), float(scale(max(high for _, high in ranges)))
    reach = NEAR * (high - low)
    shown = [float(scale(nats)) for name, nats in levels if nats > 0 or not log]
    targets = [float(scale(nats)) for name, nats in levels if name == "target" and (nats > 0 or not log)]
    shown = [y for y in shown if low - reach <= y <= high + reach] + targets
    low, high = min([low, *shown]), max([high, *shown])
    air = _AIR * (high - low) or 0.05 * abs(high) or 0.5
    return float(back(low - air)), float(back(high + air))


def level_text(level: Level, reach: tuple[float, float] | None) -> str:
    """Return legend entry: ``neighbours 3.86``, with the side on which a line outside the plot lies."""
    text = f"{level.name} {level.nats:.2f}"
    if reach is None or reach[0] <= level.nats <= reach[1]:
        return text
    return f"{text} ({'below' if level.nats < reach[0] else 'above'} the picture)"
