"""The state of a sweep, read from its runs alone, and the points that its sampler wants next."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, Literal

from workbench.base.json_lines import number
from workbench.experiments.experiment_folder import SweepFolder
from workbench.experiments.launching import refused
from workbench.experiments.readings import Reading, cancelled, reading_of
from workbench.experiments.sweep.early_stopping import RUNGS
from workbench.experiments.sweep.points import Job, Point, key_of, point_of, read_points
from workbench.experiments.sweep.samplers import ADAPTIVE, STEPWISE, Trial, distinct, propose
from workbench.experiments.sweep.space import Values
from workbench.experiments.sweep.stepwise import Seen, Settings, Walk, walk
from workbench.experiments.sweep.sweep_plan import SweepPlan
from workbench.store.evaluations import read_evaluations
from workbench.store.folder import RunFolder, read_object
from workbench.store.trash import wherever

PointWord = Literal["waiting", "going", "done", "failed", "ended early"]
_FEWEST_SPREAD = 3
"""Degrees of freedom below which a standard deviation over seeds is not worth its name."""


@dataclass(frozen=True)
class PointStatus:
    """One point, as it is now.

    Attributes:
        readings: by seed. status: ``done`` with all seeds, ``failed`` where one has.
        scores: of the seeds that are done, in the sweep's unit.
        score: their mean; NaN without one, and where a seed diverged. spread: standard deviation, NaN of less than two.
        seconds: of training, mean; NaN without one. left_floor: all seeds that are done learned more than word
            frequencies.
    """

    point: Point
    readings: dict[int, Reading]
    status: PointWord
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
class SweepStatus:
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

    points: list[PointStatus]
    wanted: list[Job] = field(default_factory=list)
    best: int | None = None
    spread: float = math.nan
    luck: float = math.nan
    close: list[int] = field(default_factory=list)
    over: bool = False

    @property
    def runs(self) -> list[tuple[Job, Reading]]:
        """All runs with their readings."""
        return [(Job(each.point, seed), reading) for each in self.points for seed, reading in each.readings.items()]

    @property
    def failed(self) -> str:
        """The reason why a sweep that is over has no best point; empty where it has."""
        return "no point has ended with a score" if self.over and self.best is None else ""


def status_of(
    plan: SweepPlan, points: Sequence[Point], refused: Mapping[str, str], ended: Mapping[int, float], *,
    stopped: bool = False,
) -> SweepStatus:  # fmt: skip
    """Read how a sweep stands now.

    Args:
        points: drawn so far. refused: by run id, why it could not be launched.
        ended: points that were ended early, with their score then.
        stopped: it was cancelled; what did not end by itself was stopped then, and has not failed.
    """
    found = [_point(plan, point, refused, ended, stopped) for point in points]
    wanted = [
        Job(each.point, seed) for each in found if each.status in ("waiting", "going")
        for seed in plan.seeds if each.readings[seed].status in ("missing", "lost")
    ]  # fmt: skip
    # Samplers that learn need whole points; else the first seed of all of them tells more than all seeds of some.
    wanted.sort(key=lambda run: (run[0].index, run[1]) if plan.sampler in ADAPTIVE else plan.seeds.index(run[1]))
    whole = [each for each in found if each.status == "done" and math.isfinite(each.score)]
    over = len(points) >= plan.runs and all(each.status not in ("waiting", "going") for each in found)
    if not whole:
        return SweepStatus(found, wanted, over=over)
    best = min(whole, key=lambda each: (each.score, each.point.index))
    spread = pooled_spread([each.scores for each in whole])
    error = spread / math.sqrt(len(plan.seeds))
    # The standard error of a difference of two means.
    close = [each.point.index for each in whole
             if each is not best and each.score - best.score < 2 * math.sqrt(2) * error]  # fmt: skip
    return SweepStatus(found, wanted, best.point.index, spread, error * expected_extreme(len(whole)), close, over)


def _point(
    plan: SweepPlan, point: Point, refused: Mapping[str, str], ended: Mapping[int, float], stopped: bool
) -> PointStatus:
    readings = {
        seed: Reading("failed", error=point.error) if point.error else
        reading_of(plan.run_folder((point, seed)), refused) for seed in plan.seeds
    }  # fmt: skip
    if point.index in ended:
        return PointStatus(point, readings, "ended early", [ended[point.index]], ended[point.index])
    readings = cancelled(readings) if stopped else readings
    done = [each for each in readings.values() if each.status == "done"]
    statuses = {each.status for each in readings.values()}
    status: PointWord = (
        "failed" if "failed" in statuses else "done" if statuses == {"done"} else
        "going" if statuses & {"going", "done"} else "waiting"
    )  # fmt: skip
    scores = [each.scored(plan.score) for each in done]
    errors = [each.error for each in readings.values() if each.status == "failed"]
    return PointStatus(
        point, readings, status, scores,
        fmean(scores) if scores else math.nan,
        pooled_spread([scores], fewest=1),
        fmean([each.seconds for each in done]) if done else math.nan,
        bool(done) and all(each.left_floor for each in done),
        errors[0] if errors else "",
    )  # fmt: skip


def pooled_spread(groups: Sequence[Sequence[float]], fewest: int = _FEWEST_SPREAD) -> float:
    """Return the standard deviation within groups, pooled over them; NaN below ``fewest`` degrees of freedom."""
    freedom = sum(len(group) - 1 for group in groups if group)
    if freedom < fewest:
        return math.nan
    return math.sqrt(sum((score - fmean(group)) ** 2 for group in groups for score in group) / freedom)


# Of few numbers, at every look after a sweep, and 0.2 s each.
@functools.lru_cache(maxsize=64)
def expected_extreme(points: int) -> float:
    """Return by how many standard deviations the best of so many equal, normal scores lies before their mean.

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
    """Return the held-out loss in nats of a run by the rung of early stopping, as far as it got."""
    folder = wherever(folder)
    recorded, budget = read_evaluations(folder).get("heldout"), read_object(folder.recipe).get("budget")
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


def plan_of(folder: SweepFolder) -> SweepPlan:
    """Read the plan; of fewer points where its sampler found no others.

    Raises:
        RunError: it cannot be read.
    """
    plan = SweepPlan.read(folder)
    found = [int(event["points"]) for event in folder.read_events() if event.get("kind") == "exhausted"]
    return replace(plan, runs=found[0]) if found else plan


def look(folder: SweepFolder, plan: SweepPlan | None = None) -> SweepStatus:
    """Read the state of a sweep.

    Raises:
        RunError: it cannot be read.
    """
    plan = plan or plan_of(folder)
    stopped = folder.read_state()["status"] == "cancelled"
    return status_of(plan, read_points(folder), refused(folder), ended_early(folder), stopped=stopped)


def rates_of(folder: SweepFolder) -> Any:
    """Return the rates of another machine that a sweep was begun with; None for this machine's."""
    from workbench.forecasting.forecast import rates_from

    return rates_from(read_object(folder.rates)) if folder.rates.is_file() else None


def next_point(plan: SweepPlan, now: SweepStatus, rates: Any = None) -> Point | None:
    """Return the next point of a sampler that learns; None where there are no others."""
    from workbench.recipes.recipe import Recipe

    recipe = Recipe(**plan.recipe)
    if plan.sampler == STEPWISE:
        wanted = search(plan, now).wanted
        return point_of(plan, recipe, len(now.points), wanted[0], rates) if wanted else None
    trials = [_trial(each) for each in now.points]
    drawn = distinct(
        lambda attempt: propose(plan.space, plan.sampler, plan.seed, plan.runs, trials, attempt),
        functools.partial(key_of, recipe),
        {key_of(recipe, each.point.drawn) for each in now.points},
    )
    return None if drawn is None else point_of(plan, recipe, len(now.points), drawn, rates)


def search(plan: SweepPlan, now: SweepStatus) -> Walk:
    """Return how far a stepwise sweep is, and what it has kept.

    Raises:
        RecipeError: the sweep is of another version, or of a choice that is not here.
    """
    settings = Settings.of(plan.recipe)
    points = {settings.key(each.point.drawn): each for each in now.points}

    def look(drawn: Values) -> Seen | None:
        each = points[settings.key(drawn)]
        if each.status in ("waiting", "going"):
            return None
        done = each.status == "done" and math.isfinite(each.score)
        return Seen(each.point.index, each.score if done else math.inf)

    def known(drawn: Values) -> bool:
        return settings.key(drawn) in points

    return walk(settings, plan.space, known, look, noise(plan, now), spent=now.over)


def noise(plan: SweepPlan, now: SweepStatus) -> float:
    """Return twice the standard error of the difference of two points' scores; NaN where no point has two seeds."""
    done = [each.scores for each in now.points if each.status == "done" and math.isfinite(each.score)]
    spread = pooled_spread(done, fewest=1)
    return 2 * math.sqrt(2 / len(plan.seeds)) * spread


def _trial(each: PointStatus) -> Trial:
    # One that was ended early counts with its score then; one that diverged has none to tell.
    if each.status in ("done", "ended early") and math.isfinite(each.score):
        return Trial(each.point.drawn, "done", each.score)
    return Trial(each.point.drawn, "going" if each.status in ("waiting", "going") else "failed", None)


def ended_early(folder: SweepFolder) -> dict[int, float]:
    """Return the points that were ended early, with their score then."""
    found = [event for event in folder.read_events() if event.get("kind") == "ended early"]
    return {int(event["point"]): float(event["score"]) for event in found}
