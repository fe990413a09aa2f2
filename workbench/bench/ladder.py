"""From transformers' Trainer to the best recipe, one rung a time: seconds until a held-out score is reached.

Claim 3 of an honest comparison. The default Trainer, its rate and warm-up swept at its whole budget, sets the score:
the mean of three seeds that no result is reported on. Every arm, the tuned Trainer included, begins with what the arm
before it came to, and looks for the fewest steps after which its own decayed run reaches that score, its rate and
warm-up swept there by the same search; a rung that makes it no faster is tried, noted and left out. This on the first
of the three seeds; then all three say how many steps each arm needs to reach the score in the mean; fresh seeds follow,
at these steps. Seconds are of the process's processor time, on one thread, without compilation, so that a busy moment
counts less; two runs train side by side on two cores, each with one to itself.
"""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from scipy.stats import t as student

from workbench.base.errors import RecipeError, WorkbenchError
from workbench.bench.contender import note
from workbench.bench.ladder_stage import Arm, Stage, Train
from workbench.bench.ladder_tracks import TRACKS, Track
from workbench.bench.presets import TUNING_SEED, nats_of, seconds_of, sweep
from workbench.bench.presets import WORKER as OURS
from workbench.bench.result import spread, verdict
from workbench.bench.rounds import ratios, waterfall
from workbench.bench.table import Options
from workbench.recipes.recipe import Recipe

THEIRS = "workbench.bench.whole_trainer"
DEFAULT, TUNED = "Trainer", "Trainer tuned"
TOLERANCE = 0.02
"""Nats above the target at which the mean of fresh seeds may end."""
LEARNED = 0.5
"""Nats below word frequencies that a target must lie, or reaching it says nothing."""
PILOT_SEEDS = (TUNING_SEED, TUNING_SEED + 1, TUNING_SEED + 2)
"""On which an arm's steps are settled: a masked model may leave the plateau on one seed, and stay on it on another."""
MORE_STEPS, MOST_TIMES = 1.05, 12
"""Factor on the steps of an arm whose pilot seeds do not reach the score in the mean, and how often it is applied. A
larger one takes an arm past the score: 1.2 times as many steps brought the tuned Trainer 0.38 nats below it."""

Rung = tuple[str, Mapping[str, Any]]
"""A pair: the new thing, and the changes to the recipe."""


class Search(NamedTuple):
    """Hold the settings of the search for the fewest steps to a score.

    Attributes:
        band: nats below the score at which it ends. tries: runs that it takes at most.
        per_doubling: nats that twice the steps are worth, before two runs say it better.
    """

    band: float
    tries: int
    per_doubling: float


FINE = Search(0.04, 6, 0.4)
ROUGH = Search(0.16, 4, 0.8)
"""Without tuning, where arms are compared roughly: runs of so few steps are where the loss falls fastest."""


def fewest_steps(
    train: Train, recipe: Recipe, target: float, start: int, search: Search = FINE
) -> tuple[Recipe, dict[str, Any]] | None:
    """Return the recipe with the fewest steps tried that end at the target or below, and its run; None where none did.

    Args:
        target: held-out nats.
        start: steps tried first.
    """
    tried: dict[int, float] = {}
    found: tuple[Recipe, dict[str, Any]] | None = None
    steps = start
    while steps not in tried and len(tried) < search.tries:
        candidate = recipe.with_(budget={"amount": steps})
        (run,) = train([candidate])
        tried[steps] = nats_of(run)
        if tried[steps] <= target and (found is None or steps < found[0].budget.amount):
            found = candidate, run
        if target - search.band <= tried[steps] <= target:
            break
        steps = _next(tried, target - search.band / 2, search.per_doubling)
    return found


def _next(tried: Mapping[int, float], aim: float, per_doubling: float) -> int:
    """Return the steps at which ``aim`` is expected: along the logarithm of steps between the two nearest runs."""
    points = [(steps, loss if math.isfinite(loss) else aim + per_doubling) for steps, loss in sorted(tried.items())]
    above, below = [point for point in points if point[1] > aim], [point for point in points if point[1] <= aim]
    near = [*above[-1:], *below[:1]] if above and below else [*above[-2:], *reversed(below[:2])]
    slope = per_doubling
    if len(near) == 2:
        (fewer, higher), (more, lower) = sorted(near)
        slope = (higher - lower) / math.log2(more / fewer) if higher > lower else slope
    # From the run that comes nearest: the last that is not there yet, or the first that is beyond it.
    steps, loss = near[-1]
    return max(1, round(steps * 2 ** min(1.5, max(-1.5, (loss - aim) / slope))))


def climb(
    arms: Sequence[Arm], candidates: Sequence[Rung], trainer: Callable[[Arm], Train], tune: bool = True
) -> dict[str, Any]:
    """Tune and place every arm on the tuning seed.

    Args:
        arms: the default Trainer, whose own end sets the score (in the mean of the pilot seeds; untuned, on the first);
            the tuned one; our engine with the same block.
        candidates: as a track has them; each is tried on what has paid so far.
        trainer: of an arm.
        tune: else every arm keeps its rate and warm-up.

    Returns:
        ``target``, ``arms`` (:class:`Arm`, those that paid), ``left_out`` (what, its seconds where it reached the
        score, and those it had to beat).
    """
    default, *others = arms
    losses_of = partial(_losses, trainer(default))
    tuned = sweep(default.recipe, losses_of)[0] if tune else default.recipe
    target = statistics.fmean(losses_of(_on_seeds(tuned, PILOT_SEEDS if tune else (TUNING_SEED,))))
    placed, seconds, left_out = [replace(default, recipe=tuned)], math.inf, []
    steps = int(tuned.budget.amount)
    for arm in others:
        found = _placed(replace(arm, recipe=placed[-1].recipe), target, steps, trainer(arm), tune)
        if found is None:
            raise WorkbenchError(f"'{arm.name}' does not reach {target:.3f} nats; give the ladder more --steps")
        placed.append(found[0])
        steps, seconds = int(found[0].recipe.budget.amount), found[1]
    for what, changes in candidates:
        before = placed[-1]
        arm = replace(before, name=f"+ {what}", what=what, recipe=before.recipe.with_(**changes))
        rows = before.recipe.data.most_rows / arm.recipe.data.most_rows
        found = _placed(arm, target, round(steps * rows), trainer(arm), tune)
        if found is None or found[1] >= seconds:
            left_out.append({"what": what, "seconds": found and found[1], "to_beat": seconds})
            note(
                f"{what}: left out ({'not reached' if found is None else f'{found[1]:.1f} s'}, to beat {seconds:.1f} s)"
            )
            continue
        placed.append(found[0])
        steps, seconds = int(found[0].recipe.budget.amount), found[1]
    return {"target": target, "arms": placed, "left_out": left_out}


def _on_seeds(recipe: Recipe, seeds: Sequence[int]) -> list[Recipe]:
    return [recipe.with_(seed=seed) for seed in seeds]


def _losses(train: Train, recipes: Sequence[Recipe]) -> list[float]:
    return [nats_of(run) for run in train(recipes)]


def _placed(arm: Arm, target: float, steps: int, train: Train, tune: bool) -> tuple[Arm, float] | None:
    """Return the arm with steps, rate and warm-up at which it reaches the target soonest, and its seconds.

    Those are its steps at the median pace of all runs that looked for them: one busy moment decides about no rung.
    """
    paces: list[float] = []

    def timed(recipes: Sequence[Recipe]) -> list[dict[str, Any]]:
        runs = train(recipes)
        paces.extend(seconds_of(run) / run["steps"] for run in runs)
        return runs

    first = found = fewest_steps(timed, arm.recipe, target, steps, FINE if tune else ROUGH)
    if tune:
        start = arm.recipe.with_(budget={"amount": steps}) if first is None else first[0]
        tuned, _ = sweep(start, partial(_losses, timed))
        found = fewest_steps(timed, tuned, target, int(tuned.budget.amount)) or first
    if found is None:
        return None
    recipe, run = found
    seconds = run["steps"] * statistics.median(paces)
    note(f"{arm.name}: {run['steps']} steps, {seconds:.1f} s, lr {recipe.optimizer.lr:g}, {nats_of(run):.3f} nats")
    return replace(arm, recipe=recipe), seconds


def settled(arm: Arm, target: float, train: Train) -> Arm:
    """Return the arm with as many steps as the mean of its pilot seeds takes to reach the target;
    as it was where none do.
    """
    recipe = arm.recipe
    for _ in range(1 + MOST_TIMES):
        loss = statistics.fmean(_losses(train, _on_seeds(recipe, PILOT_SEEDS)))
        note(f"{arm.name}: {recipe.budget}, {loss:.3f} nats in the mean of the pilot seeds")
        if loss <= target:
            return replace(arm, recipe=recipe)
        recipe = recipe.with_(budget={"amount": round(recipe.budget.amount * MORE_STEPS)})
    return arm


def summary(arms: Sequence[Arm], runs: Mapping[str, Sequence[Mapping[str, Any]]], target: float) -> dict[str, Any]:
    """Summarize fresh seeds: per arm seconds, score beside the target, and the factors on both Trainers, by seed."""
    seconds = {name: [seconds_of(run) for run in each] for name, each in runs.items()}
    found: dict[str, Any] = {}
    for arm in arms:
        losses = [nats_of(run) for run in runs[arm.name]]
        found[arm.name] = {
            "what": arm.what, "steps": int(arm.recipe.budget.amount), "lr": arm.recipe.optimizer.lr,
            "seconds": spread(seconds[arm.name]), "losses": losses,
            "above_target": statistics.fmean(losses) - target,
            "above_target_interval": _interval([loss - target for loss in losses]),
            "reached": statistics.fmean(losses) <= target + TOLERANCE,
            **{f"times_faster_than_{word}": ratios(seconds[other], seconds[arm.name])
               for word, other in (("default", DEFAULT), ("tuned", TUNED))},
        }  # fmt: skip
    chain = [(arm.what, arm.name) for arm in arms]
    rates = {name: [1 / each for each in values] for name, values in seconds.items()}
    return {"by_arm": found, "waterfall": waterfall(rates, chain)}


def _interval(values: Sequence[float]) -> list[float] | None:
    """Return 95% of the mean, by Student's t; None for a single value."""
    if len(values) < 2:
        return None
    half = float(student.ppf(0.975, len(values) - 1)) * statistics.stdev(values) / math.sqrt(len(values))
    mean = statistics.fmean(values)
    return [mean - half, mean + half]


def measured(options: Options) -> dict[str, Any]:
    """Climb, train fresh seeds, and give what they came to."""
    cores = os.cpu_count() or 1
    if options.seeds < 1:
        raise WorkbenchError(f"--seeds: a ladder needs 1 fresh seed or more, got {options.seeds}")
    if not 1 <= options.at_once <= max(2, cores):
        raise WorkbenchError(f"--at-once: each run needs a core of its own; use 1..{cores}, got {options.at_once}")
    track = TRACKS[options.track]
    recipe = track.base(options.steps or track.steps).with_assignments(options.set)
    if track.quick:
        recipe = recipe.with_(execution={"compile": False})
    # Said here, and not by a child, or by the last rung after all others have been trained.
    recipe.execution.resolve_device()
    for what, changes in track.rungs:
        try:
            recipe.with_(**changes)
        except RecipeError as error:
            raise RecipeError(f"the rung '{what}' cannot be tried with these options: {error}") from None
    eager, tuned = {"eager": track.quick}, "fused AdamW, no dropout, the fastest precision and compilation"
    arms = [
        Arm(DEFAULT, "transformers' Trainer, default", THEIRS, recipe, {"tuned": False, **eager}),
        Arm(TUNED, tuned, THEIRS, recipe, {"tuned": True, **eager}),
        Arm("our engine", "our engine, the same block", OURS, recipe, {}),
    ]
    # A GPU has no second half.
    at_once = min(options.at_once, cores) if recipe.engine().device.type == "cpu" else 1
    with options.results.own(), Stage(options.results, at_once) as stage:
        return {**_climbed(arms, track, stage, range(1, options.seeds + 1), at_once), "tuned": not track.quick}


def _climbed(arms: list[Arm], track: Track, stage: Stage, seeds: range, at_once: int) -> dict[str, Any]:
    if track.quick:
        # With these both begin, whatever they come to.
        stage.train([(arm, arm.recipe) for arm in arms[:2]])
    found = climb(arms, track.rungs, stage.trainer, not track.quick)
    default, *others = found["arms"]
    if not track.quick:
        found["arms"] = [default, *(settled(arm, found["target"], stage.trainer(arm)) for arm in others)]
    # Few seeds at a time: a slow hour hits all arms of a seed.
    runs: dict[str, list[dict[str, Any]]] = {arm.name: [] for arm in found["arms"]}
    for first in range(0, len(seeds), at_once):
        some = seeds[first : first + at_once]
        work = [(arm, recipe) for arm in found["arms"] for recipe in _on_seeds(arm.recipe, some)]
        for (arm, _), run in zip(work, stage.train(work), strict=True):
            runs[arm.name].append(run)
    return {
        "target": found["target"], "left_out": found["left_out"], **summary(found["arms"], runs, found["target"]),
        "recipes": {arm.name: arm.recipe.to_dict() for arm in found["arms"]}, "seeds": len(seeds),
    }  # fmt: skip


def shown(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the verdicts: whether every arm reached the score, and whether the score is worth reaching.

    Raises:
        WorkbenchError: the ladder has not ended.
    """
    if "by_arm" not in result:
        raise WorkbenchError("the file holds no ladder that has ended; the same command without --show goes on")
    below = result["unigram_entropy"] - result["target"]
    arms = result["by_arm"].items()
    return {"verdicts": [
        verdict("the score, below word frequencies", below, ">=", LEARNED, "nats"),
        *(verdict(f"{name}: above the score", arm["above_target"], "<=", TOLERANCE, "nats") for name, arm in arms),
    ]}  # fmt: skip
