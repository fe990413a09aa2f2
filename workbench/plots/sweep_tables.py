"""The numbers behind the pictures of a sweep, for whoever cannot see them: one table per picture."""

from __future__ import annotations

import math
from typing import Any

from workbench.base.fields import as_typed
from workbench.base.text import count, decimal, plain
from workbench.plots.pareto import front_of
from workbench.plots.sweep import SweepPicture
from workbench.plots.tables import escape, table


def pareto_table(picture: SweepPicture, cost: str) -> str:
    """Return points from the cheapest, with their score and their place on the front.

    Args:
        cost: one of :data:`workbench.plots.sweep.COSTS`.
    """
    x, y = [dot.cost(cost) for dot in picture.dots], [dot.score for dot in picture.dots]
    kept = set(front_of(cost, x, y))
    rows = []
    for at in sorted((at for at in range(len(x)) if math.isfinite(x[at])), key=x.__getitem__):
        shown = decimal(x[at], 1) if cost == "seconds" else count(x[at])
        rows.append((_name(picture, at), [shown, f"{y[at]:.3f}", "on the front" if at in kept else "beaten"]))
    return table([picture.costs[cost], f"score ({picture.unit})", "front"], rows, corner="point")


def knob_table(picture: SweepPicture, path: str) -> str:
    """Return points with their value of one knob, their score and those of their seeds."""
    rows = [
        (_name(picture, at), [_value(dot.values[path]), f"{dot.score:.3f}", _several(dot.scores)])
        for at, dot in enumerate(picture.dots)
        if dot.values.get(path) is not None
    ]
    return table([plain(path), f"score ({picture.unit})", "by seed"], rows, corner="point")


def parallel_table(picture: SweepPicture) -> str:
    """Return points with all their knobs and their score, the best first."""
    known = [at for at, dot in enumerate(picture.dots) if math.isfinite(dot.score)]
    rows = [
        (str(dot.index), [*(_value(dot.values.get(path)) for path in picture.knobs), f"{dot.score:.3f}"])
        for dot in sorted((picture.dots[at] for at in known), key=lambda dot: dot.score)
    ]
    return table([*map(plain, picture.knobs), f"score ({picture.unit})"], rows, corner="point")


def importance_table(picture: SweepPicture) -> str:
    """Return knobs with their importance, the largest first."""
    rows = [(plain(path), [f"{share:.0%}"]) for path, share in picture.importance.items()]
    about = "".join(f'<p class="quiet">{escape(line)}</p>' for line in picture.importance_caveat.splitlines())
    return table([picture.importance_method], rows, corner="knob") + about


def _name(picture: SweepPicture, at: int) -> str:
    dot = picture.dots[at]
    return f"{dot.index}: {plain(dot.label, 160)}"


def _value(value: Any) -> str:
    return "none" if value is None else as_typed(value)


def _several(scores: Any) -> str:
    return ", ".join(f"{score:.3f}" for score in scores)
