"""Seconds per step of every arm on a quiet machine: what turns a budget in reference time into a number of steps.

A busy machine then cannot skew a comparison: runs are executed by steps, whenever and beside whatever they run. The
idea of a reference system time is that of Kaddour et al. 2023 (arXiv 2307.06440).
"""

from __future__ import annotations

import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.bench.contender import Contender
from workbench.recipe import Recipe

CONTENDER = "workbench.bench.methods_contender"
SEGMENTS, STEPS = 16, 8
"""Rounds in which contenders alternate, and steps in each: together the whole schedule of every arm."""
OUTLIER = 3.0
"""A step so many times longer than its segment's median was no ordinary one: compilation, or a copy of a model."""
AT_ONCE = 6
"""Contenders alive at the same time; each holds a model, its graphs and a copy of torch, about 0.7 GiB."""
THEIRS = "baseline"
"""Name of the contender that all others are divided by."""

Clock = str


def clock_of(recipe: Recipe) -> Clock:
    """``cpu_seconds`` on one CPU thread, which neighbours on the machine stretch least, else ``wall_seconds``."""
    on_cpu = recipe.execution.resolve_device().type == "cpu"
    return "cpu_seconds" if on_cpu and recipe.execution.threads == 1 else "wall_seconds"


def segment_seconds(each: Sequence[float]) -> tuple[float, float]:
    """(mean seconds of an ordinary step, seconds spent beyond that) of a segment's steps."""
    limit = OUTLIER * statistics.median(each)
    # Not the median: where layers are dropped at random, the mean is what a run pays.
    ordinary = [seconds for seconds in each if seconds <= limit]
    mean = sum(ordinary) / len(ordinary)
    return mean, sum(seconds - mean for seconds in each if seconds > limit)


def alternate(
    recipes: Mapping[str, Recipe], *, segments: int = SEGMENTS, steps: int = STEPS, say: Callable[[str], None] = print
) -> dict[str, dict[str, Any]]:
    """Time the schedules of several recipes side by side, segment by segment in turns.

    Args:
        recipes: by name; each is given a budget of ``segments * steps`` steps (or as many times its tokens per step).
        segments, steps: rounds, and steps of each.
        say: told what happens.

    Returns:
        by name: ``segments`` (what :func:`~workbench.bench.methods_contender.timed_steps` said, by round), ``ready``.
    """
    with tempfile.TemporaryDirectory() as logs, contextlib.ExitStack() as stack:
        stage: dict[str, Contender] = {}
        for name, recipe in recipes.items():
            say(f"starting {name}")
            setting = {"name": name, "recipe": squeezed(recipe, segments * steps).to_dict()}
            stage[name] = Contender(CONTENDER, setting, Path(logs) / f"{len(stage)}.log")
            # kill: a round that is under way when another contender dies need not be waited for.
            stack.callback(stage[name].kill)
        readings: dict[str, list[dict[str, Any]]] = {name: [] for name in stage}
        for number in range(segments):
            # First and last change places from round to round: a drift within a round cancels.
            for name in list(stage) if number % 2 == 0 else reversed(list(stage)):
                readings[name].append(stage[name].ask({"steps": steps}))
        return {name: {"segments": readings[name], "ready": stage[name].ready} for name in stage}


def squeezed(recipe: Recipe, steps: int) -> Recipe:
    """The recipe with a budget of about ``steps`` steps, in the unit that its budget counts."""
    amount = steps * recipe.data.most_rows * recipe.data.longest if recipe.budget.unit == "tokens" else steps
    return recipe.with_(budget={"amount": amount})


def cost(readings: dict[str, Any], baseline: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """What a step costs, from two contenders of one :func:`alternate`.

    Returns:
        ``ratio`` of seconds per step to the baseline's, over the whole schedule; the same per token (``token_ratio``)
        and for useful FLOPs per token (``flops_ratio``); ``by_segment`` ratios of seconds per step;
        ``overhead_steps``, the seconds of outliers beyond ordinary steps in units of a baseline's step;
        ``transitions`` from one stage to the next, and ``transition_steps``, what they took in the same unit.
    """
    ours, theirs = (
        [segment_seconds(s[clock]) for s in each["segments"]] for each in (readings, baseline)
    )  # fmt: skip
    step = sum(mean for mean, _ in theirs) / len(theirs)
    # Ratios within a round first: a slow minute hits both, and cancels.
    by_segment = [a / b for (a, _), (b, _) in zip(ours, theirs, strict=True)]
    ratio = sum(r * b for r, (b, _) in zip(by_segment, theirs, strict=True)) / sum(b for b, _ in theirs)
    tokens, flops = (
        sum(s[what] for s in readings["segments"]) / sum(s[what] for s in baseline["segments"])
        for what in ("tokens", "flops")
    )
    return {
        "ratio": ratio,
        "token_ratio": ratio / tokens,
        "flops_ratio": flops / tokens,
        "by_segment": [round(r, 4) for r in by_segment],
        "overhead_steps": sum(extra for _, extra in ours) / step,
        **_transitions(readings, clock, step),
    }


def _transitions(readings: dict[str, Any], clock: Clock, step: float) -> dict[str, float]:
    """How many there were, and what the first step of a stage took beyond the median of the others, over ``step``.

    Copies of layers, new optimizer state, and graphs that are entered for the first time: all of it is in that step.
    """
    by_stage: dict[int, list[float]] = {}
    for segment in readings["segments"]:
        for stage, seconds in zip(segment.get("stages", ()), segment[clock], strict=False):
            by_stage.setdefault(stage, []).append(seconds)
    later = list(by_stage.values())[1:]
    beyond = [each[0] - statistics.median(each[1:]) for each in later if len(each) > 1]
    return {"transitions": len(beyond), "transition_steps": sum(beyond) / step}


def calibrate(
    base: Recipe, recipes: Mapping[str, Recipe], *, segments: int = SEGMENTS, steps: int = STEPS,
    at_once: int = AT_ONCE, say: Callable[[str], None] = print, keep: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Seconds per step of every recipe, in groups of a few that alternate with the baseline.

    Args:
        base: the baseline.
        recipes: the others, by name.
        segments, steps, at_once: rounds, steps of each, contenders alive at the same time.
        say: told what happens.
        keep: called after every group with what is known by then, so that a kill loses one group at most.

    Returns:
        ``arms``: by name what :func:`cost` says, or ``{"error": ...}``; ``baseline_seconds_per_step`` by group;
        ``busy``: wall over CPU seconds of the baseline by group (1 on a quiet machine); ``load`` when each began.
    """
    clock = clock_of(base)
    found: dict[str, Any] = {
        "clock": clock, "date": time.strftime("%Y-%m-%d", time.gmtime()), "segments": segments, "steps": steps,
        "baseline_seconds_per_step": [], "busy": [], "load": [], "arms": {},
    }  # fmt: skip
    names = list(recipes)
    for first in range(0, max(1, len(names)), at_once - 1):
        group = names[first : first + at_once - 1]
        found["load"].append(round(os.getloadavg()[0], 2))
        say(f"calibration, {first + len(group)} of {len(names)} arms: {', '.join(group)}")
        sittings, failed = _sittings(base, {name: recipes[name] for name in group}, segments, steps, say)
        found["arms"] |= {name: {"error": why} for name, why in failed.items()}
        for readings in sittings:
            theirs = readings.pop(THEIRS)
            ordinary = [segment_seconds(segment[clock])[0] for segment in theirs["segments"]]
            found["baseline_seconds_per_step"].append(sum(ordinary) / len(ordinary))
            wall, cpu = (sum(sum(s[c]) for s in theirs["segments"]) for c in ("wall_seconds", "cpu_seconds"))
            found["busy"].append(round(wall / cpu, 3))
            found["arms"] |= {name: cost(each, theirs, clock) for name, each in readings.items()}
        if keep is not None:
            keep(found)
    return found


def _sittings(
    base: Recipe, recipes: dict[str, Recipe], segments: int, steps: int, say: Callable[[str], None]
) -> tuple[list[dict[str, dict[str, Any]]], dict[str, str]]:
    """Readings with the baseline's among them, all in one sitting if all can run; and why those that cannot do not."""
    try:
        return [alternate({THEIRS: base, **recipes}, segments=segments, steps=steps, say=say)], {}
    except RuntimeError as error:
        if not recipes:
            raise
        say(f"a contender failed, so each of this group meets the baseline alone: {str(error).splitlines()[-1]}")
    sittings, failed = [], {}
    for name, recipe in recipes.items():
        try:
            sittings.append(alternate({THEIRS: base, name: recipe}, segments=segments, steps=steps, say=say))
        except RuntimeError as error:
            failed[name] = str(error).splitlines()[-1]
    return sittings, failed


def seconds_per_unit(calibration: Mapping[str, Any], name: str, tokens_per_step: int | None = None) -> float:
    """Reference seconds per step of an arm: its ratio times the median of the baseline's over all groups.

    Args:
        calibration: as :func:`calibrate` gave it.
        name: of the arm; one that was not timed costs what the baseline costs.
        tokens_per_step: of the baseline; given, the answer is seconds per token.
    """
    base: float = statistics.median(calibration["baseline_seconds_per_step"])
    arm = calibration["arms"].get(name, {"ratio": 1.0, "token_ratio": 1.0})
    return base * arm["ratio"] if tokens_per_step is None else base * arm["token_ratio"] / tokens_per_step


def steps_for(seconds: float, per_step: float) -> int:
    """Steps that fit a budget in reference time, at least one.

    Example:
        >>> steps_for(30.0, 0.061)
        492
    """
    # Rounded, not cut: on average no arm is given less than another.
    return max(1, round(seconds / per_step))
