"""Losses to compare curves with, floors and a target, and which of them a plot shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from workbench.runs.view import RunView

NEAR = 0.35
"""A floor further from the curves than this share of their span stays outside the plot, where it would squeeze the
curves; the legend names it."""
_AIR = 0.05


class Level(NamedTuple):
    """A horizontal line: its ``name`` as in :data:`workbench.quantities.LEVEL_DASHES`, and its loss in nats."""

    name: str
    nats: float


def levels_of(views: Sequence[RunView], target: float | None = None) -> list[Level]:
    """The lines of some runs, ascending; runs on one text share theirs."""
    # Rounding merges levels that differ by float noise.
    found = {(name, round(nats, 3)) for view in views for name, nats in view.yardstick.levels.items()}
    found |= {("target", target)} if target is not None else set()
    return [Level(*each) for each in sorted(found, key=lambda level: level[1])]


def loss_range(losses: Iterable[np.ndarray], levels: Sequence[Level], log: bool = False) -> tuple[float, float] | None:
    """Lowest and highest loss of a plot: all curves, a target, and the floors that are near.

    Args:
        losses: of each curve, any shape (N,), in nats.
        levels: the lines.
        log: whether the axis is logarithmic.

    Returns:
        None where there is nothing to draw.

    Example:
        >>> low, high = loss_range([np.array([9.0, 5.0])], [Level("neighbours", 1.2), Level("word frequencies", 6.4)])
        >>> round(low, 2), round(high, 2)
        (4.8, 9.2)
    """
    flat = np.concatenate([np.asarray(each, dtype=np.float64) for each in losses] or [np.empty(0)])
    flat = flat[np.isfinite(flat) & ((flat > 0) | (not log))]
    if not len(flat):
        return None
    scale, back = (np.log, np.exp) if log else (np.asarray, np.asarray)
    low, high = float(scale(flat.min())), float(scale(flat.max()))
    reach = NEAR * (high - low)
    shown = [float(scale(nats)) for name, nats in levels if nats > 0 or not log]
    targets = [float(scale(nats)) for name, nats in levels if name == "target" and (nats > 0 or not log)]
    shown = [y for y in shown if low - reach <= y <= high + reach] + targets
    low, high = min([low, *shown]), max([high, *shown])
    air = _AIR * (high - low) or 0.05 * abs(high) or 0.5
    return float(back(low - air)), float(back(high + air))


def level_text(level: Level, reach: tuple[float, float] | None) -> str:
    """Legend entry: ``neighbours 3.86``, with the side on which a line outside the plot lies."""
    text = f"{level.name} {level.nats:.2f}"
    if reach is None or reach[0] <= level.nats <= reach[1]:
        return text
    return f"{text} ({'below' if level.nats < reach[0] else 'above'} the picture)"
