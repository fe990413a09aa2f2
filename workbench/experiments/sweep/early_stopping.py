"""Ending weak points early: where that is sound, whom it ends, and what it would have thrown away.

At a quarter and at half of its budget a point ends when it is in the worse half of the points that got so far
(successive halving; Jamieson and Talwalkar 2016, with two rungs). It is sound only while the learning rate is still at
its peak: under a rate that decays from the start, the settings that end best are often behind for most of the run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from workbench.base.errors import RecipeError, unknown

if TYPE_CHECKING:
    from workbench.experiments.budget import Share
    from workbench.recipes.recipe import Recipe

RULES = ("halving",)
RUNGS = (0.25, 0.5)
"""Shares of the budget at which points are compared."""
FEWEST = 4
"""Points that must have reached a rung before one of them is ended there."""
Losses = Mapping[float, float]
"""Held-out loss of a run by the share of its budget that was spent."""


@dataclass(frozen=True)
class Audit:
    """The effect that ending points at one rung would have had on a sweep whose points all went on.

    Attributes:
        rung: share of the budget. points: that are known there and at their end.
        agreement: Spearman's rank correlation of the losses there with those at the end.
        saved: share of the budget of all points.
        ended: indices of the points that would have been ended.
        lost: nats by which the best that is left is worse than the best of all; 0 if it is left.
    """

    rung: float
    points: int
    agreement: float
    saved: float
    ended: list[int]
    lost: float


def check_rule(rule: str | None) -> str:
    """Return the rule, empty for none.

    Raises:
        RecipeError: no such rule.
    """
    if rule is not None and rule not in RULES:
        raise RecipeError(unknown("early_stopping", rule, RULES))
    return rule or ""


def why_not(recipe: Recipe, share: Share, swept: Sequence[str]) -> str:
    """Return why losses in the middle of a run say little about its end; empty where they say enough."""
    from workbench.choices.progress import Progress

    for axis in ("depth", "budget"):
        if any(path == axis or path.startswith(f"{axis}.") for path in swept):
            return f"points differ in {axis}, and so in what they have done by a share of their budget"
    if recipe.budget.evaluations % round(1 / RUNGS[0]):
        return (f"losses are compared at a quarter and at half of the budget, and budget.evaluations is "
                f"{recipe.budget.evaluations}; make it a multiple of 4")  # fmt: skip
    rate_N = [
        recipe.optimizer.lr_at(Progress(int(x * share.steps), int(x * share.tokens), x * share.seconds, recipe.budget))
        for x in np.linspace(0, RUNGS[-1], 101)
    ]
    if rate_N[-1] >= max(rate_N) * (1 - 1e-6):
        return ""
    return (
        f"under optimizer.schedule '{recipe.optimizer.schedule.kind}' the learning rate has fallen to "
        f"{rate_N[-1] / max(rate_N):.0%} of its peak by half of the budget, and which setting ends best shows only "
        "after its own decay; hold the rate until then (optimizer.schedule.hold=0.5 of warmup_hold_decay), or sweep "
        "without early stopping"
    )


def weak(index: int, rung: float, losses: Mapping[int, Losses]) -> bool:
    """Return True for a point in the worse half of those that have reached a rung.

    Args:
        losses: by point.
    """
    there = {each: known[rung] for each, known in losses.items() if rung in known}
    if len(there) < FEWEST or index not in there:
        return False
    return _ranked(there[index]) > median(map(_ranked, there.values()))


def audit(losses: Mapping[int, Losses], final: Mapping[int, float]) -> list[Audit]:
    """Return the effect that the rule would have had at each rung, as if all points ran side by side.

    Args:
        losses: by point. final: finite losses at the end, by point.
    """
    found = []
    for rung in RUNGS:
        known = {
            index: each for index, each in losses.items() if rung in each and math.isfinite(final.get(index, math.nan))
        }
        if len(known) < FEWEST:
            continue
        ended = [index for index in known if weak(index, rung, known)]
        left = [final[index] for index in known if index not in ended]
        ends = [final[index] for index in known]
        agreement = rank_correlation([_ranked(each[rung]) for each in known.values()], ends)
        found.append(Audit(
            rung, len(known), agreement, (1 - rung) * len(ended) / len(known), ended, min(left) - min(ends)
        ))  # fmt: skip
    return found


def _ranked(loss: float) -> float:
    # One that diverged has no number, and is behind all others.
    return math.inf if math.isnan(loss) else loss


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Return Spearman's rank correlation, ties at their mean rank; NaN where one of them does not vary."""
    from scipy.stats import rankdata

    x, y = rankdata(a), rankdata(b)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    return float(np.corrcoef(x, y)[0, 1])
