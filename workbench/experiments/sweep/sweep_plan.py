"""The plan of a sweep: a recipe, a space, a sampler and seeds; whatever makes a sweep void is refused first."""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from workbench.base.errors import RecipeError
from workbench.base.text import plain
from workbench.experiments.budget import check_size, parse
from workbench.experiments.plan import Cost, RunsPlan, Score, begun, known
from workbench.experiments.sweep.early_stopping import check_rule
from workbench.experiments.sweep.points import Job, Point, key_of, point_of
from workbench.experiments.sweep.samplers import FIXED, STEPWISE, check_sampler, distinct, draw, grid
from workbench.experiments.sweep.space import MOST_POINTS, Knob, Space, Values, combinations, size, space_of
from workbench.experiments.sweep.stepwise import FEWEST_SEEDS, Settings, alternatives
from workbench.experiments.validation import (
    START_SECONDS,
    Log,
    at_once,
    check_options,
    is_whole,
    recipe_here,
    same_text,
    seeds_of,
)  # fmt: skip
from workbench.experiments.words import duration
from workbench.store.folder import RunFolder

if TYPE_CHECKING:
    from workbench.recipes.recipe import Recipe

TUNING_SEED = 1000
"""The first seed of a sweep: races, which judge, take theirs from 0 on."""
RACES_SEEDS = 100
"""Races take their seeds from 0 on: a seed below this that a sweep has tuned on is spoiled for their claims."""
MOST_SEEDS = 20
_PROBES = 32
"""Points that stand for those that a learning sampler will propose."""


@dataclass(frozen=True, repr=False, kw_only=True)
class SweepPlan(RunsPlan):
    """A sweep as its folder keeps it.

    Attributes:
        recipe: as JSON. space: the knobs that it varies. sampler, seed: that draw the points; runs: number of points.
        budget: as asked; empty for the recipe's own. clock: see :mod:`workbench.experiments.budget`.
        early_stopping: the rule, empty for none.
        part_of: tag of the tuning that it is a stage of; empty else.
    """

    recipe: dict[str, Any]
    space: Space
    sampler: str
    runs: int
    seed: int
    budget: str
    clock: str
    early_stopping: str
    cost: Cost
    at_once: int
    part_of: str = ""

    def __repr__(self) -> str:
        return (f"<sweep of {plain(', '.join(self.space), 100)}: {self.runs} points, {self.cost.runs} runs, about "
                f"{duration(self.cost.seconds)}>")  # fmt: skip

    def base(self, points: Iterable[Point]) -> dict[str, Any]:
        """Return the recipe as JSON under the budget of its runs: that of all points where it is one, else as asked."""
        budgets = {(point.share.amount, point.share.unit) for point in points if point.share is not None}
        if len(budgets) != 1 and not self.budget:
            return self.recipe
        amount, unit = budgets.pop() if len(budgets) == 1 else parse(self.budget)
        return {**self.recipe, "budget": {**self.recipe["budget"], "amount": amount, "unit": unit}}

    def run_folder(self, job: tuple[Point, int]) -> RunFolder:
        """See :meth:`RunsPlan.run_folder`."""
        point, seed = job
        digest = hashlib.sha256(repr((self.id, point.index, seed)).encode()).hexdigest()[:10]
        return RunFolder(Path(self.runs_dir) / f"{self.id[:15]}-p{point.index}-s{seed}-{digest}")

    def recipe_of(self, job: tuple[Point, int]) -> Recipe:
        """See :meth:`RunsPlan.recipe_of`."""
        from workbench.recipes.recipe import Recipe

        point, seed = job
        if point.error or point.share is None:
            raise RecipeError(f"point {point.index} ({point.label}) cannot be trained: {point.error}")
        tail = f" seed {seed}" if len(self.seeds) > 1 else ""
        recipe = Recipe(**self.recipe).edited(point.values.items())
        budget = {"amount": point.share.amount, "unit": point.share.unit}
        return recipe.with_(name=f"{point.label[: 80 - len(tail)]}{tail}" or "as given", seed=seed, budget=budget)

    def facts_of(self, job: Job) -> dict[str, Any]:
        """See :meth:`RunsPlan.facts_of`."""
        return {"point": job.point.index, "seed": job.seed}

    def title_of(self, job: Job) -> str:
        """See :meth:`RunsPlan.title_of`."""
        return f"point {job.point.index} seed {job.seed}"

    @classmethod
    def _parts(cls, raw: dict[str, Any]) -> dict[str, Any]:
        space = {path: Knob(**{**known(Knob, knob), "values": tuple(knob["values"])})
                 for path, knob in raw["space"].items()}  # fmt: skip
        return {"space": space, "cost": Cost(**known(Cost, raw["cost"]))}


def plan_sweep(
    recipe: Recipe | str,
    space: Mapping[str, Any],
    *,
    sampler: str = "grid",
    runs: int | None = None,
    seeds: int | Sequence[int] = 1,
    budget: str | None = None,
    seed: int = 0,
    early_stopping: str | None = None,
    score: Score = "nats",
    clock: str = "reference",
    name: str | None = None,
    runs_dir: str | Path | None = None,
    rates: Any = None,
    say: Log | None = None,
) -> tuple[SweepPlan, list[Point]]:
    """Return the plan of a sweep and the points that are known before it begins; see
    :func:`workbench.experiments.sweep.sweep.sweep`.

    Raises:
        RecipeError, DataError: as there; nothing was launched.
    """
    log = check_options(name=name, runs_dir=runs_dir, say=say, score=score, clock=clock, budget=budget)
    base = recipe_here(recipe)
    found = space_of(space, base)
    if budget and any(path.split(".")[0] == "budget" for path in found):
        raise RecipeError("budget: this sweep varies it; leave out the budget of the whole sweep")
    chosen, rule = seeds_of(seeds, "sweep", TUNING_SEED, 1, MOST_SEEDS), check_rule(early_stopping)
    if sampler == STEPWISE and len(chosen) < FEWEST_SEEDS:
        raise RecipeError("seeds: sampler 'stepwise' keeps what pays by more than seeds differ, so every point needs "
                          "at least two: seeds=2, or --seeds 2")  # fmt: skip
    if not is_whole(seed) or seed < 0:
        raise RecipeError(f"seed: the sampler's is a whole number from 0 on, got {seed!r:.60}")
    if runs is not None and not is_whole(runs):
        raise RecipeError(f"runs: how many points is a whole number, got {runs!r:.60}")
    if rule and score != "nats":
        raise RecipeError("early_stopping compares losses in the middle of runs, which are in nats; take score='nats'")
    if (whole := size(found)) and sampler == "grid" and whole > MOST_POINTS:
        raise RecipeError(f"this grid has {whole:,} points, and a sweep has at most {MOST_POINTS:,}; take "
                          "the sampler 'random' and fewer points: runs=50, or --points 50")  # fmt: skip
    plan = SweepPlan(
        **begun(name or "sweep", base.hash, runs_dir), name=name or f"{base.name}: {', '.join(found)}"[:80],
        recipe=base.to_dict(), space=found, sampler=sampler, runs=check_sampler(sampler, found, runs), seeds=chosen,
        seed=seed, score=score, budget=budget or "", clock=clock, early_stopping=rule, cost=Cost(0, 0.0, 0.0),
        at_once=1, warnings=(),
    )  # fmt: skip
    fixed = sampler in FIXED
    drawn = _distinct_points(base, plan) if fixed else _probes(base, plan)
    log(f"looking ahead over {len(drawn)} points")
    # The first forecast may measure the machine, which takes a while and is said.
    from workbench.forecasting.forecast import forecast

    forecast(base, rates=rates, say=log)
    points = [point_of(plan, base, index, values, rates) for index, values in enumerate(drawn)]
    good = [point for point in points if not point.error]
    if rule and (bad := [point.error for point in points if point.error.startswith("no early stopping")]):
        raise RecipeError(f"early_stopping='{rule}' would judge too soon: {bad[0].partition(': ')[2]}")
    if not good:
        raise RecipeError(f"none of the points can be trained; the first: {points[0].error}")
    _check_scores(plan, good, log)
    plan = replace(plan, runs=len(points)) if fixed else plan
    return _priced(plan, good, len(good) if fixed else plan.runs), points if fixed else []


def _distinct_points(base: Recipe, plan: SweepPlan) -> list[Values]:
    """List all points of a sampler that needs no results, each of them once."""
    if plan.sampler == "grid":
        return list({key_of(base, drawn): drawn for drawn in reversed(grid(plan.space))}.values())[::-1]
    found: dict[str, Values] = {}
    key = functools.partial(key_of, base)
    for index in range(plan.runs):
        drawn = distinct(functools.partial(draw, plan.space, plan.seed, index), key, set(found))
        if drawn is None:
            raise RecipeError(f"runs: this space has hardly more than {len(found)} different points, and {plan.runs} "
                              "are asked; take the sampler 'grid', or fewer points")  # fmt: skip
        found[key(drawn)] = drawn
    return list(found.values())


def _probes(base: Recipe, plan: SweepPlan) -> list[Values]:
    """List points that a learning sampler may propose: combinations of all values and ends, and some at random."""
    space = plan.space
    if plan.sampler == STEPWISE:
        # One knob at a time is all that is known: what else is tried follows from what pays.
        settings = Settings.of(plan.recipe)
        start = settings.start(space)
        one = [settings.moved(space, start, path, value) for path, knob in space.items()
               for value in alternatives(knob, start.get(path))]  # fmt: skip
        return list({settings.key(each): each for each in (start, *one)}.values())
    ends = list(itertools.islice(combinations(space), MOST_POINTS))
    step = max(1, len(ends) // _PROBES)
    return [*ends[::step][:_PROBES], *(draw(space, plan.seed, index, 0) for index in range(4))]


def _check_scores(plan: SweepPlan, points: list[Point], say: Log) -> None:
    """Refuse points whose scores do not compare, and budgets that can show nothing."""
    recipes = {f"point {point.index} ({plain(point.label, 80)})": (plan.recipe_of(Job(point, plan.seeds[0])), point)
               for point in points}  # fmt: skip
    prepared = same_text({name: recipe for name, (recipe, _) in recipes.items()}, plan.score, say)
    for name, (recipe, point) in recipes.items():
        assert point.share is not None
        check_size(name, recipe, point.share, prepared[name], plan.budget or str(recipe.budget))


def _priced(plan: SweepPlan, points: list[Point], trained: int) -> SweepPlan:
    """Return the plan with its cost; of a learning sampler as if its points were like those looked at.

    Args:
        trained: points that will be.
    """
    shares = [point.share for point in points if point.share is not None]
    runs, side_by_side = trained * len(plan.seeds), at_once(share.threads for share in shares)
    each = fmean(share.seconds + START_SECONDS for share in shares)
    compiling = max(share.compile_seconds for share in shares)
    cores = fmean(share.threads * (share.seconds + START_SECONDS) for share in shares)
    warnings = []
    if any(seed < RACES_SEEDS for seed in plan.seeds):
        warnings.append(f"seeds below {RACES_SEEDS} are those that races judge on: what is tuned on them cannot be "
                        "claimed on them")  # fmt: skip
    if plan.early_stopping:
        warnings.append("points may end at a quarter and at half of their budget")
    cost = Cost(runs, (runs * each + compiling) / side_by_side, runs * cores / 3600)
    return replace(plan, cost=cost, at_once=side_by_side, warnings=tuple(warnings))
