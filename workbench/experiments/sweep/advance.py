"""One look after a sweep: draw points, launch their runs, end weak ones, end it when nothing is left to do."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from workbench.base.errors import RecipeError
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.experiments.budget import parse, share_of, shared
from workbench.experiments.experiment_folder import ENDED
from workbench.experiments.launching import bring, end, refused, stop
from workbench.experiments.sweep.early_stopping import spared, weak, why_not
from workbench.experiments.sweep.plan import Point, SweepPlan, add_points, read_points
from workbench.experiments.sweep.samplers import STEPWISE, Trial, distinct, propose
from workbench.experiments.sweep.sentences import progress
from workbench.experiments.sweep.space import Values, applied
from workbench.experiments.sweep.status import PointStanding, Standing, losses_at_rungs, pooled_spread, standing
from workbench.experiments.sweep.stepwise import Seen, Settings, Walk, walk
from workbench.experiments.sweep.sweep_folder import SweepFolder
from workbench.launchers.queue.orphans import start_orphan
from workbench.store.folder import read_object
from workbench.store.state import exclusive


def plan_of(folder: SweepFolder) -> SweepPlan:
    """What was asked; of fewer points where its sampler found no others.

    Raises:
        RunError: it cannot be read.
    """
    plan = SweepPlan.read(folder)
    found = [int(event["points"]) for event in folder.read_events() if event.get("kind") == "exhausted"]
    return replace(plan, runs=found[0]) if found else plan


def look(folder: SweepFolder, plan: SweepPlan | None = None) -> Standing:
    """How a sweep stands now.

    Raises:
        RunError: it cannot be read.
    """
    plan = plan or plan_of(folder)
    cancelled = folder.read_state()["status"] == "cancelled"
    return standing(plan, read_points(folder), refused(folder), ended_early(folder), cancelled=cancelled)


def advance(folder: SweepFolder, start: Callable[..., Run] = launch, rates: Any = None) -> Standing:
    """Bring a sweep forward as far as it goes now; safe to call at any time, from any process, any number of times.

    Args:
        start: launches a run, as :func:`workbench.client.launch.launch`. rates: see :func:`workbench.forecast`;
            None for those that the sweep was begun with.

    Raises:
        RunError: the sweep cannot be read, or a run not be launched (a full disk); calling again tries again.
        OSError: the sweep's folder cannot be written to.
    """
    with exclusive(folder.path):
        plan, status = plan_of(folder), folder.read_state()["status"]
        now = look(folder, plan)
        if status in ENDED:
            return now
        if plan.early_stopping and _end_weak(folder, plan, now):
            now = look(folder, plan)
        for each in now.points:
            if each.status == "ended early":
                # Of all seeds, and again where a driver was killed before it did so.
                going = [plan.run_folder(each.point, seed) for seed, reading in each.readings.items()
                         if reading.status == "going" and reading.doing != "stopping"]  # fmt: skip
                stop(going, by=f"sweep {folder.id}")
        room, rates = plan.at_once - now.going, rates or rates_of(folder)
        while len(now.wanted) < room and len(now.points) < plan.runs:
            point = next_point(plan, now, rates)
            if point is None:
                if now.going or now.wanted:
                    break  # what they come to decides what is tried next
                folder.add_event("exhausted", points=len(now.points))
                plan = plan_of(folder)
                now = look(folder, plan)
                break
            add_points(folder, [point])
            now = look(folder, plan)
        if now.over:
            failed = "" if now.best is not None else "no point has ended with a score"
            folder.write_state("failed" if failed else "finished", failed)
            return now
        for each in now.points:
            for seed, reading in each.readings.items():
                if reading.doing == "queued":
                    # After a reboot it waits without a process, and nobody else may come to start it.
                    start_orphan(plan.run_folder(each.point, seed))
        for point, seed in now.wanted[: max(0, room)]:
            bring(
                folder, plan.run_folder(point, seed), now.points[point.index].readings[seed],
                functools.partial(plan.recipe_of, point, seed), start,
                title=f"point {point.index} seed {seed}", point=point.index, seed=seed,
            )  # fmt: skip
        if folder.read_state()["message"] != (message := progress(plan, now)):
            folder.write_state(status, message)
    return now


def rates_of(folder: SweepFolder) -> Any:
    """The rates of another machine that a sweep was begun with; None for those of the one at hand."""
    from workbench.forecasting.forecast import rates_from

    return rates_from(read_object(folder.rates)) if folder.rates.is_file() else None


def next_point(plan: SweepPlan, now: Standing, rates: Any = None) -> Point | None:
    """The next point of a sampler that learns; None where there are no others."""
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


def search(plan: SweepPlan, now: Standing) -> Walk:
    """How far a stepwise sweep is, and what it has kept.

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


def noise(plan: SweepPlan, now: Standing) -> float:
    """Twice the standard error of the difference of two points' scores; NaN where no point has two seeds."""
    done = [each.scores for each in now.points if each.status == "done" and math.isfinite(each.score)]
    spread = pooled_spread(done, fewest=1)
    return 2 * math.sqrt(2 / len(plan.seeds)) * spread


def _trial(each: PointStanding) -> Trial:
    # One that was ended early counts with its score then; one that diverged has none to tell.
    if each.status in ("done", "ended early") and math.isfinite(each.score):
        return Trial(each.point.drawn, "done", each.score)
    return Trial(each.point.drawn, "going" if each.status in ("waiting", "going") else "failed", None)


def key_of(recipe: Any, drawn: Values) -> str:
    """What tells settings apart: the values that apply to the recipe, those of one that cannot be trained as drawn."""
    try:
        return json.dumps(applied(recipe, drawn).values, sort_keys=True)
    except RecipeError:
        return json.dumps(drawn, sort_keys=True)


def point_of(plan: SweepPlan, recipe: Any, index: int, drawn: Values, rates: Any = None) -> Point:
    """A point with its share of the budget, or with why it cannot be trained."""
    from workbench.forecasting.forecast import forecast

    def ahead(each: Any) -> Any:
        return forecast(each, rates=rates)

    try:
        whole, values = applied(recipe, drawn)
    except RecipeError as error:
        return Point(index, drawn, drawn, error=str(error))
    try:
        if plan.budget:
            _, share = shared(whole, parse(plan.budget), plan.clock, ahead)
        else:
            share = share_of(whole, ahead)
        why = why_not(whole, share, list(plan.space)) if plan.early_stopping else ""
        return Point(index, drawn, values, share, why and f"no early stopping: {why}")
    except RecipeError as error:
        return Point(index, drawn, values, error=str(error))


def ended_early(folder: SweepFolder) -> dict[int, float]:
    """Points that were ended early, with their score then."""
    found = [event for event in folder.read_events() if event.get("kind") == "ended early"]
    return {int(event["point"]): float(event["score"]) for event in found}


def _end_weak(folder: SweepFolder, plan: SweepPlan, now: Standing) -> bool:
    """Write down which points end, since they are behind at a rung; whether there were any."""
    first, found = plan.seeds[0], False
    # Of the first seed: who is behind there trains no others.
    losses = {each.point.index: losses_at_rungs(plan.run_folder(each.point, first)) for each in now.points}
    known = {event.get("point") for event in folder.read_events() if event.get("kind") == "spared"}
    for each in now.points:
        index = each.point.index
        rungs = [rung for rung in losses[index] if weak(index, rung, losses)]
        if each.status != "going" or each.readings[first].status != "going" or not rungs or index in known:
            continue
        if spared(plan.id, index):
            folder.add_event("spared", point=index, rung=rungs[0])
            continue
        folder.add_event("ended early", point=index, rung=rungs[0], score=losses[index][rungs[-1]])
        found = True
    return found


def cancel(folder: SweepFolder) -> list[str]:
    """End a sweep; stops its runs, each with a checkpoint, and returns their ids. What has ended stays.

    Raises:
        RunError: the sweep has ended, and none of its runs goes on.
    """

    def stop_runs() -> list[str]:
        plan = plan_of(folder)
        return stop(plan.run_folder(each.point, seed) for each in look(folder, plan).points
                    for seed, reading in each.readings.items() if reading.status == "going")  # fmt: skip

    return end(folder, stop_runs)
