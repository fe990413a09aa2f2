"""From how a sweep stands to what its pictures show."""

from __future__ import annotations

import math

from workbench.experiments.words import UNITS
from workbench.plots.sweep import Dot, SweepPicture
from workbench.sweeping.importance import METHOD
from workbench.sweeping.plan import SweepPlan
from workbench.sweeping.results import seconds_of, shares
from workbench.sweeping.standing import Standing


def picture_of(plan: SweepPlan, now: Standing) -> SweepPicture:
    """Every point that has ended with a score."""
    dots = []
    for each in now.points:
        share = each.point.share
        if each.status == "done" and math.isfinite(each.score) and share is not None:
            dots.append(Dot(
                each.point.index, each.point.label, each.point.values, each.score, each.scores, seconds_of(plan, each),
                share.memory_bytes, share.parameters,
            ))  # fmt: skip
    return SweepPicture(UNITS[plan.score], dots, list(plan.space), _logarithmic(plan), shares(plan, now), METHOD)


def _logarithmic(plan: SweepPlan) -> list[str]:
    """Knobs of logarithmic ranges, and lists of numbers over more than a decade."""
    found = []
    for path, knob in plan.space.items():
        numbers = [value for value in knob.values if isinstance(value, int | float) and not isinstance(value, bool)]
        wide = len(numbers) == len(knob.values) > 0 and min(numbers) > 0 and max(numbers) >= 4 * min(numbers)
        if knob.log or wide:
            found.append(path)
    return found
