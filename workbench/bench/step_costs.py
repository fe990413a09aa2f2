"""Compare the cost of a step of several recipes with a baseline's: contenders alternate, ratios are within rounds."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.bench.contender import TRAINER
from workbench.bench.rounds import Entrant, beside
from workbench.recipes.recipe import Recipe

OUTLIER = 3.0
"""A step so many times longer than its segment's median was no ordinary one: compilation, or a copy of a model."""
BASELINE = "baseline"
"""Name of the contender that all others are divided by."""


def segment_seconds(each: Sequence[float]) -> tuple[float, float]:
    """Return (mean seconds of an ordinary step, seconds spent beyond that) of a segment's steps."""
    limit = OUTLIER * statistics.median(each)
    # Not the median: where layers are dropped at random, the mean is what a run pays.
    ordinary = [seconds for seconds in each if seconds <= limit]
    mean = sum(ordinary) / len(ordinary)
    return mean, sum(seconds - mean for seconds in each if seconds > limit)


def squeezed(recipe: Recipe, steps: int) -> Recipe:
    """Return the recipe with a budget of about ``steps`` steps, in the unit that its budget counts."""
    amount = steps * recipe.data.most_rows * recipe.data.longest if recipe.budget.unit == "tokens" else steps
    return recipe.with_(budget={"amount": amount})


def cost(ours: Sequence[dict[str, Any]], theirs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the cost of a step beside a baseline's, from the rounds of two contenders that took turns.

    Returns:
        ``ratio`` of seconds per step to the baseline's, over the whole schedule; the same per token (``token_ratio``)
        and for useful FLOPs per token (``flops_ratio``); ``by_segment`` ratios of seconds per step;
        ``overhead_steps``, the seconds of outliers beyond ordinary steps in units of a baseline's step;
        ``transitions`` from one stage to the next, and ``transition_steps``, what they took in the same unit.
    """
    mine, base = ([segment_seconds(segment["seconds"]) for segment in each] for each in (ours, theirs))
    step = sum(mean for mean, _ in base) / len(base)
    # Ratios within a round first: a slow minute hits both, and cancels.
    by_segment = [a / b for (a, _), (b, _) in zip(mine, base, strict=True)]
    ratio = sum(r * b for r, (b, _) in zip(by_segment, base, strict=True)) / sum(b for b, _ in base)
    tokens, flops = (sum(s[what] for s in ours) / sum(s[what] for s in theirs) for what in ("tokens", "flops"))
    return {
        "ratio": ratio,
        "token_ratio": ratio / tokens,
        "flops_ratio": flops / tokens,
        "by_segment": [round(r, 4) for r in by_segment],
        "overhead_steps": sum(extra for _, extra in mine) / step,
        **_transitions(ours, step),
    }


def _transitions(segments: Sequence[dict[str, Any]], step: float) -> dict[str, float]:
    """Return the number of transitions, and what first steps of stages took beyond the median of the others.

    The time is in units of ``step``.

    Copies of layers, new optimizer state, and graphs that are entered for the first time: all of it is in that step.
    """
    by_stage: dict[int, list[float]] = {}
    for segment in segments:
        for stage, seconds in zip(segment["stages"], segment["seconds"], strict=True):
            by_stage.setdefault(stage, []).append(seconds)
    later = list(by_stage.values())[1:]
    beyond = [each[0] - statistics.median(each[1:]) for each in later if len(each) > 1]
    return {"transitions": len(beyond), "transition_steps": sum(beyond) / step}


def step_costs(base: Recipe, recipes: Mapping[str, Recipe], *, segments: int, steps: int) -> dict[str, Any]:
    """Measure the cost of a step of every recipe, in groups of a few that alternate with the baseline.

    Returns:
        ``arms``: by name what :func:`cost` says, or ``{"error": ...}``; ``baseline_seconds_per_step`` by group;
        ``busy``: wall over counted seconds of the baseline by group (on one CPU thread, 1 on a quiet machine); ``load``
        when each began.
    """
    found: dict[str, Any] = {
        "segments": segments, "steps": steps, "baseline_seconds_per_step": [], "busy": [], "load": [], "arms": {},
    }  # fmt: skip
    entrants = {
        name: Entrant(TRAINER, {"recipe": squeezed(recipe, segments * steps).to_dict()})
        for name, recipe in {BASELINE: base, **recipes}.items()
    }
    for held in beside(BASELINE, entrants, rounds=segments, steps=steps):
        found["load"].append(held.load)
        found["arms"] |= {name: {"error": why} for name, why in held.failed.items()}
        theirs = held.answers.pop(BASELINE)
        ordinary = [segment_seconds(segment["seconds"])[0] for segment in theirs]
        found["baseline_seconds_per_step"].append(sum(ordinary) / len(ordinary))
        wall, counted = (sum(sum(s[clock]) for s in theirs) for clock in ("wall_seconds", "seconds"))
        found["busy"].append(round(wall / counted, 3))
        found["arms"] |= {name: cost(each, theirs) for name, each in held.answers.items()}
    return found
