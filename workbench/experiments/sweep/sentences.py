"""A sweep in plain words: what it will take, how it stands, what it says."""

from __future__ import annotations

import math
from collections.abc import Sequence

from workbench.base.fields import as_typed
from workbench.base.text import many, plain
from workbench.experiments.budget import Amount
from workbench.experiments.readings import underway
from workbench.experiments.sweep.early_stopping import Audit
from workbench.experiments.sweep.plan import Point, SweepPlan
from workbench.experiments.sweep.samplers import STEPWISE
from workbench.experiments.sweep.status import Standing
from workbench.experiments.words import IDLE, UNITS, duration
from workbench.telemetry.baselines import MARGIN_NATS

RACES_SEEDS = 100
"""Races take their seeds from 0 on: a seed below this that a sweep has tuned on is spoiled for their claims."""
ON_FLOOR = "learned no more than word frequencies"
_SHOWN = 4


def cost_lines(plan: SweepPlan, points: list[Point]) -> list[str]:
    """What a sweep will take, what it varies, and what speaks against it."""
    cost = plan.cost
    hours = f", {cost.core_hours:.2g} core hours" if cost.core_hours else ""
    seeds = f" on {len(plan.seeds)} seeds each" if len(plan.seeds) > 1 else ""
    most = "at most " if plan.sampler == STEPWISE else ""
    lines = [f"{most}{many(plan.runs, 'point')}{seeds}, {many(cost.runs, 'run')}, {plan.at_once} at a time: about "
             f"{duration(cost.seconds)} {IDLE}{hours}"]  # fmt: skip
    lines += [f"  {path}: {knob}" for path, knob in plan.space.items()]
    lines += [f"  {line}" for line in filter(None, (_sizes(points), _sampler(plan)))]
    broken = [point for point in points if point.error]
    lines += [f"  note: point {point.index} ({plain(point.label, 80)}) cannot be trained: {plain(point.error, 200)}"
              for point in broken[:_SHOWN]]  # fmt: skip
    if len(broken) > _SHOWN:
        lines.append(f"  note: {len(broken) - _SHOWN} other points cannot be trained either")
    return [*lines, *(f"  note: {line}" for line in plan.warnings)]


def conditions(plan: SweepPlan, points: Sequence[Point]) -> str:
    """Under what all points were trained, in sentences: budget, seeds and sampler."""
    budget = plan.budget or plan.base(points)["budget"]
    if not isinstance(budget, str):
        budget = f"{Amount(budget['amount'], budget['unit']).words}, the recipe's own"
    sizes = _sizes(points)
    named = f"seed{'s' * (len(plan.seeds) > 1)} {', '.join(map(str, plan.seeds))}"
    return (
        f"Each run at the budget of {budget}{sizes and f' ({sizes})'}. Each point on {many(len(plan.seeds), 'seed')}: "
        f"{named}. Points by {_sampler(plan)}."
    )


def _sizes(points: Sequence[Point]) -> str:
    """Steps and parameters of the points that can be trained, in words; empty where there is none."""
    shares = [point.share for point in points if point.share is not None and not point.error]
    if not shares:
        return ""
    steps, sizes = ([f(share) for share in shares] for f in (lambda s: s.steps, lambda s: s.parameters))
    return f"{_span(steps)} steps each, {_span(sizes)} parameters"


def _sampler(plan: SweepPlan) -> str:
    return f"sampler {plan.sampler}" + (f", seed {plan.seed}" if plan.sampler != "grid" else "")


def progress(plan: SweepPlan, now: Standing) -> str:
    """How far a sweep is, in one line."""
    counted = [each.status for each in now.points]
    most = "at most " if plan.sampler == STEPWISE and not now.over else ""
    parts = [f"{counted.count('done')} of {most}{plan.runs} points done"]
    parts += [f"{counted.count(status)} {status}" for status in ("ended early", "failed") if status in counted]
    return ", ".join([*parts, *underway(now.readings)])


def best_lines(plan: SweepPlan, now: Standing) -> list[str]:
    """The best point, said so that nobody takes its score for a result."""
    if not now.points:
        return ["no point has been drawn: the process that does so loads for some seconds first"]
    if now.best is None:
        return ["no point has ended with a score yet" if not now.over else "no point has ended with a score"]
    unit, best = UNITS[plan.score], now.points[now.best]
    of = sum(each.status == "done" for each in now.points)
    lines = [f"best of {of} so far" if not now.over else f"best of {of}"]
    lines[0] += f": point {now.best} ({plain(best.point.label, 120)}) at {best.score:.3f} {unit}"
    lines[0] += f", mean of {len(plan.seeds)} seeds" if len(plan.seeds) > 1 else ", one seed"
    lines += _on_floor(plan, now)
    lines.append("chosen on its own score, which flatters it: race it on fresh seeds for a claim")
    if math.isfinite(now.spread):
        lines[-1] += f" (of {of} equal points the best would look {now.luck:.3f} better than they are)"
        close = ", ".join(map(str, now.close[:8])) + (", ..." if len(now.close) > 8 else "")
        lines.append(f"seeds differ by {now.spread:.3f} (standard deviation of a run); " + (
            f"not told apart from the best: point{'s' * (len(now.close) > 1)} {close}" if now.close else
            "every other point is further away than twice the standard error"
        ))  # fmt: skip
    elif len(plan.seeds) == 1:
        lines.append("one seed each: how much of the differences is luck is not known; two would say it")
    lines += _edges(plan, now)
    return lines


def _on_floor(plan: SweepPlan, now: Standing) -> list[str]:
    """How many points have learned no more than word frequencies, in a line; nothing where all have."""
    done = [each for each in now.points if each.status == "done"]
    where = f"{MARGIN_NATS} nats below word frequencies{' with every seed' if len(plan.seeds) > 1 else ''}"
    stayed = sum(not each.left_floor for each in done)
    if now.best is not None and not now.points[now.best].left_floor:
        return [f"not even the best has got {where}: a larger budget may rank the points otherwise"]
    return [f"{stayed} of {len(done)} points have not got {where}"] if stayed else []


def brief_words(plan: SweepPlan, now: Standing, *, ended: bool = False) -> str:
    """The best point in a few words.

    Args:
        ended: nothing more will run, whatever is left to do.
    """
    if now.best is None:
        return "no point has a score" if now.over or ended else "no best yet"
    best = now.points[now.best]
    unit, setting = UNITS[plan.score], plain(best.point.label, 40)
    floor = "" if best.left_floor else f", {ON_FLOOR}"
    return f"best{'' if now.over else ' so far'} {best.score:.3f} {unit}: point {now.best} ({setting}){floor}"


def _edges(plan: SweepPlan, now: Standing) -> list[str]:
    """Knobs whose best value is the first or the last of its numbers."""
    if now.best is None or not now.over:
        return []
    values, found = now.points[now.best].point.values, []
    for path, knob in plan.space.items():
        numbers = [each for each in knob.values if isinstance(each, int | float) and not isinstance(each, bool)]
        if len(numbers) == len(knob.values) > 2 and values.get(path) in (min(numbers), max(numbers)):
            found.append(f"{path}={as_typed(values[path])}")
    return [f"at the edge of what was tried: {', '.join(found)}; the best may lie outside"] if found else []


def audit_sentence(found: Audit) -> str:
    """What early stopping would have done at a rung, in a sentence."""
    lost = f"kept the best{' (or one as good)' if found.ended else ''}" if found.lost <= 0 else (
        f"thrown away the best (the best that is left is {found.lost:.3f} worse)")  # fmt: skip
    agreement = f"; ranks there and at the end agree by {found.agreement:+.2f} (Spearman)"
    return (
        f"ending the worse half at {found.rung:.0%} of the budget would have saved {found.saved:.0%} of it and {lost}"
        f"{agreement if math.isfinite(found.agreement) else ''}"
    )


def failures(now: Standing) -> list[str]:
    """Points that failed, each with its reason."""
    failed = [each for each in now.points if each.status == "failed"]
    lines = [f"point {each.point.index} ({plain(each.point.label, 80)}) failed: {plain(each.error, 300)}"
             for each in failed[:_SHOWN]]  # fmt: skip
    return [*lines, *([f"{len(failed) - _SHOWN} other points failed, too"] if len(failed) > _SHOWN else [])]


def _span(values: list[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
