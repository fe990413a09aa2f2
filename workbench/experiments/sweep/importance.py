r"""Importance of each knob of a sweep: shares of the variance of ranks.

Scores are replaced by their ranks, so that one run that diverged does not stand for everything, and for each knob

.. math:: \eta^2 = \sum_v n_v (\bar r_v - \bar r)^2 / \sum_i (r_i - \bar r)^2

is the share of the ranks' variance between its values; a range is cut into parts of equal count, four at most. On a
whole grid these are the main effects of a functional ANOVA, and with what is left, the interplay of knobs and luck,
they add up to 1. Elsewhere they overlap. (Optuna's fANOVA fits a forest of scikit-learn's to the same end, and needs
far more points than a sweep here has.)
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

METHOD = "share of the variance of ranks that each knob explains by itself"
FEWEST = 4
"""Points below which nothing is said."""
_PARTS = 4
ENOUGH, ENOUGH_PER_KNOB = 10, 4
"""Points below which shares are said to say little: at all, and for each knob."""


def importance(points: Sequence[Mapping[str, Any]], scores: Sequence[float], ranges: Sequence[str]) -> dict[str, float]:
    """Return shares by path, from the largest; empty for one knob, too few points, or scores that are all the same.

    Args:
        points: values by path; a knob that a point does not have is a value of its own.
        scores: lower is better; one that is not finite is the worst of all.
        ranges: paths whose values are numbers of a range.
    """
    from scipy.stats import rankdata

    if len(points) < FEWEST:
        return {}
    rank_N = rankdata([score if math.isfinite(score) else math.inf for score in scores])
    paths = dict.fromkeys(path for point in points for path in point)
    if len(paths) < 2:
        return {}
    whole = float(((rank_N - rank_N.mean()) ** 2).sum())
    if whole == 0:
        return {}
    found = {}
    for path in paths:
        groups = _groups([point.get(path) for point in points], path in ranges)
        between = sum(len(each) * (rank_N[each].mean() - rank_N.mean()) ** 2 for each in groups)
        found[path] = float(between / whole)
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def caveat(shares: Mapping[str, float], points: int) -> str:
    """Return the limits of shares in sentences; empty without shares.

    Example:
        >>> caveat({"optimizer.lr": 0.08, "depth.kind": 0.08}, 5).splitlines()[1]
        'Only 5 points: shares of fewer than 10 say little.'
    """
    if not shares:
        return ""
    overlap = sum(shares.values()) > 1 + 1e-9
    lines = ["Shares overlap, as knobs changed together." if overlap else
             "The rest: knobs together, curves within a part of a range, chance."]  # fmt: skip
    enough = max(ENOUGH, ENOUGH_PER_KNOB * len(shares))
    if points < enough:
        lines.append(f"Only {points} points: shares of fewer than {enough} say little.")
    return "\n".join(lines)


def _groups(values: Sequence[Any], numbers: bool) -> list[np.ndarray]:
    """Return places of equal values; of neighbours for the numbers of a range."""
    if numbers and all(value is not None for value in values):
        # Parts of one point each would explain everything.
        parts = min(_PARTS, len(values) // 2)
        return np.array_split(np.argsort(np.array(values, dtype=np.float64), kind="stable"), parts)
    keys = np.array([json.dumps(value, sort_keys=True) for value in values])
    return [np.flatnonzero(keys == key) for key in dict.fromkeys(keys)]
