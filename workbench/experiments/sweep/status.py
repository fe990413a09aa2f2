"""How a sweep stands: read from its runs alone, by whoever looks, whether or not anybody drives it."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Literal

from workbench.base.json_lines import number
from workbench.experiments.readings import Reading, reading_of
from workbench.experiments.sweep.early_stopping import RUNGS
from workbench.experiments.sweep.plan import Point, SweepPlan
from workbench.experiments.sweep.samplers import ADAPTIVE
from workbench.store.folder import RunFolder, read_object
from workbench.store.trash import wherever

Status = Literal["waiting", "going", "done", "failed", "ended early"]
_FEWEST_SPREAD = 3
"""Degrees of freedom below which a standard deviation over seeds is not worth its name."""


@dataclass(frozen=True)
class PointStanding:
    """One point, as it is now.

    Attributes:
        readings: by seed. status: ``done`` with all seeds, ``failed`` where one has.
        scores: of the seeds that are done, in the sweep's unit.
        score: their mean; NaN without one, and where a seed diverged. spread: standard deviation, NaN of less than two.
        seconds: of training, mean; NaN without one. left_floor: whether all seeds that are done have learned something.
    """

    point: Point
    readings: dict[int, Reading]
    status: Status
    scores: list[float]
    score: float = math.nan
    spread: float = math.nan
    seconds: float = math.nan
    left_floor: bool = False
    error: str = ""

    @property
    def progress(self) -> float:
        """Share of its budget that is spent, over all seeds."""
        return fmean(each.progress for each in self.readings.values())


@dataclass(frozen=True)
class Standing:
    """A sweep as its runs tell.

    Attributes:
        points: in order. wanted: runs to start, in the order in which they should.
        best: index of the point with the lowest mean, among those with all their seeds; None before there is one.
        spread: standard deviation of one run's score over seeds, pooled over points; NaN where it is not known.
        luck: by how much the best of so many equal points would seem better than their mean by chance; NaN where not
            known.
        close: indices of the points that are not told apart from the best by twice the standard error.
        over: nothing is left to do.
    """

    points: list[PointStanding]
    wanted: list[tuple[Point, int]] = field(default_factory=list)
    best: int | None = None
    spread: float = math.nan
    luck: float = math.nan
    close: list[int] = field(default_factory=list)
    over: bool = False

    @property
    def readings(self) -> list[Reading]:
        """Of all runs."""
        return [each for point in self.points for each in point.readings.values()]

    @property
    def going(self) -> int:
        """Runs that train or wait for their turn."""
        return sum(each.status == "going" for each in self.readings)


def standing(
    plan: SweepPlan, points: Sequence[Point], refused: Mapping[str, str], ended: Mapping[int, float], *,
    cancelled: bool = False,
) -> Standing:  # fmt: skip
    """How a sweep stands now.

    Args:
        points: drawn so far. refused: by run id, why it could not be launched.
        ended: points that were ended early, with their score then. cancelled: what did not end by itself was stopped.
    """
    found = [_point(plan, point, refused, ended, cancelled) for point in points]
    wanted = [
        (each.point, seed) for each in found if each.status in ("waiting", "going")
        for seed in plan.seeds if each.readings[seed].status in ("missing", "lost")
    ]  # fmt: skip
    # Samplers that learn need whole points; else the first seed of all of them tells more than all seeds of some.
    wanted.sort(key=lambda run: (run[0].index, run[1]) if plan.sampler in ADAPTIVE else plan.seeds.index(run[1]))
    whole = [each for each in found if each.status == "done" and math.isfinite(each.score)]
    over = len(points) >= plan.runs and all(each.status not in ("waiting", "going") for each in found)
    if not whole:
        return Standing(found, wanted, over=over)
    best = min(whole, key=lambda each: (each.score, each.point.index))
    spread = pooled_spread([each.scores for each in whole])
    error = spread / math.sqrt(len(plan.seeds))
    # The standard error of a difference of two means.
    close = [each.point.index for each in whole
             if each is not best and each.score - best.score < 2 * math.sqrt(2) * error]  # fmt: skip
    return Standing(found, wanted, best.point.index, spread, error * expected_extreme(len(whole)), close, over)


def _point(
    plan: SweepPlan, point: Point, refused: Mapping[str, str], ended: Mapping[int, float], cancelled: bool
) -> PointStanding:
    readings = {
        seed: Reading("failed", error=point.error) if point.error else
        reading_of(plan.run_folder(point, seed), refused) for seed in plan.seeds
    }  # fmt: skip
    if point.index in ended:
        return PointStanding(point, readings, "ended early", [ended[point.index]], ended[point.index])
    if cancelled:
        readings = {seed: each if each.status in ("done", "going") else Reading("missing", progress=each.progress)
                    for seed, each in readings.items()}  # fmt: skip
    done = [each for each in readings.values() if each.status == "done"]
    statuses = {each.status for each in readings.values()}
    status: Status = (
        "failed" if "failed" in statuses else "done" if statuses == {"done"} else
        "going" if statuses & {"going", "done"} else "waiting"
    )  # fmt: skip
    scores = [each.scored(plan.score) for each in done]
    errors = [each.error for each in readings.values() if each.status == "failed"]
    return PointStanding(
        point, readings, status, scores,
        fmean(scores) if scores else math.nan,
        pooled_spread([scores], fewest=1),
        fmean([each.seconds for each in done]) if done else math.nan,
        bool(done) and all(each.left_floor for each in done),
        errors[0] if errors else "",
    )  # fmt: skip


def pooled_spread(groups: Sequence[Sequence[float]], fewest: int = _FEWEST_SPREAD) -> float:
    """Standard deviation within groups, pooled over them; NaN of fewer degrees of freedom than ``fewest``."""
    freedom = sum(len(group) - 1 for group in groups if group)
    if freedom < fewest:
        return math.nan
    return math.sqrt(sum((score - fmean(group)) ** 2 for group in groups for score in group) / freedom)


# Of few numbers, at every look after a sweep, and 0.2 s each.
@functools.lru_cache(maxsize=64)
def expected_extreme(points: int) -> float:
    """By how many standard deviations the best of so many equal, normal scores lies before their mean.

    Example:
        >>> round(expected_extreme(2), 3), round(expected_extreme(10), 3)
        (0.564, 1.539)
    """
    from scipy.integrate import quad
    from scipy.stats import norm

    if points < 2:
        return 0.0
    # The mean of the largest of n normal numbers.
    return float(quad(lambda x: x * points * norm.pdf(x) * norm.cdf(x) ** (points - 1), -12, 12)[0])


def losses_at_rungs(folder: RunFolder) -> dict[float, float]:
    """Held-out loss in nats of a run by the rung of early stopping, as far as it got."""
    folder = wherever(folder)
    recorded, budget = read_object(folder.evaluations).get("heldout"), read_object(folder.recipe).get("budget")
    if not isinstance(recorded, list) or not isinstance(budget, dict):
        return {}
    points: list[dict[str, Any]] = [each for each in recorded if isinstance(each, dict)]
    amount, unit = number(budget.get("amount")), str(budget.get("unit")).replace("steps", "step")
    found = {}
    for rung in RUNGS:
        # The first at or behind it: one may stand a step later than the share says.
        there = [each for each in points if rung * 0.999 <= number(each.get(unit)) / amount <= rung + 0.06]
        if there:
            found[rung] = number(there[0].get("loss"))
    return found
