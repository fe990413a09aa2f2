"""The Pareto front, against trying every pair."""

from __future__ import annotations

import math
import random

from workbench.plots.pareto import front


def slow(x: list[float], y: list[float]) -> list[int]:
    known = [at for at in range(len(x)) if math.isfinite(x[at]) and math.isfinite(y[at])]
    kept = [
        at for at in known
        if not any(x[o] <= x[at] and y[o] <= y[at] and (x[o] < x[at] or y[o] < y[at]) for o in known)
    ]  # fmt: skip
    return sorted(kept, key=lambda at: (x[at], y[at], at))


def test_as_by_trying_every_pair() -> None:
    random.seed(0)
    for trial in range(400):
        # Few values, so that ties are many.
        x, y = ([random.choice([1.0, 2.0, 3.0, 4.0, math.nan, math.inf]) for _ in range(trial % 12)] for _ in range(2))
        assert front(x, y) == slow(x, y)
    x, y = ([random.random() for _ in range(60)] for _ in range(2))
    assert front(x, y) == slow(x, y)
