"""A sweep in plain words: its cost, how it stands, its best point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, ClassVar

from workbench.base.fields import as_typed
from workbench.base.json_lines import finite, number
from workbench.base.text import UNKNOWN, count, decimal, many, plain, share_done
from workbench.experiments.budget import Amount
from workbench.experiments.snapshot import Pick, Snapshot
from workbench.experiments.sweep.early_stopping import Audit, audit
from workbench.experiments.sweep.importance import METHOD, caveat, importance
from workbench.experiments.sweep.points import Point
from workbench.experiments.sweep.samplers import STEPWISE
from workbench.experiments.sweep.sweep_plan import SweepPlan
from workbench.experiments.sweep.sweep_result import SweepResult
from workbench.experiments.sweep.sweep_status import PointStatus, SweepStatus, losses_at_rungs
from workbench.experiments.words import UNITS, cost_line, span, underway
from workbench.plots.forecast_facts import bytes_words
from workbench.plots.pareto import front_of
from workbench.telemetry.quantities import SECONDS_AHEAD, SECONDS_TRAINED

COSTS = ("seconds", "memory_bytes", "parameters")
"""Costs that scores are held against."""
_SHOWN = 4
_FIRST_LINES = 2
"""Sentences that stand above the pictures: the best point, and its worth."""


def cost_lines(plan: SweepPlan, points: list[Point]) -> list[str]:
    """Return what a sweep takes, what it varies, and warnings."""
    seeds = f" on {len(plan.seeds)} seeds each" if len(plan.seeds) > 1 else ""
    most = "at most " if plan.sampler == STEPWISE else ""
    runs = f"{most}{many(plan.runs, 'point')}{seeds}, {many(plan.cost.runs, 'run')}"
    lines = [cost_line(runs, plan.cost, plan.at_once), *(f"  {path}: {knob}" for path, knob in plan.space.items())]
    lines += [f"  {line}" for line in filter(None, (_sizes(points), _sampler(plan)))]
    broken = [f"{_named(point)} cannot be trained: {plain(point.error, 200)}" for point in points if point.error]
    return [*lines, *(f"  note: {line}" for line in (*_first(broken), *plan.warnings))]


def conditions(plan: SweepPlan, points: Sequence[Point]) -> str:
    """Return budget, seeds and sampler of all points, in sentences."""
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
    """Return steps and parameters of the points that can be trained; empty where there is none."""
    shares = [point.share for point in points if point.share is not None and not point.error]
    if not shares:
        return ""
    return (f"{span([share.steps for share in shares])} steps each, {span([share.parameters for share in shares])} "
            "parameters")  # fmt: skip


def _sampler(plan: SweepPlan) -> str:
    return f"sampler {plan.sampler}" + (f", seed {plan.seed}" if plan.sampler != "grid" else "")


def _named(point: Point) -> str:
    return f"point {point.index} ({plain(point.label, 80)})"


def _first(lines: list[str]) -> list[str]:
    return [*lines[:_SHOWN], *([f"and {len(lines) - _SHOWN} others"] if len(lines) > _SHOWN else [])]


def audit_sentence(found: Audit) -> str:
    """Return what early stopping would have done at a rung, in a sentence."""
    lost = "kept the best" if found.lost <= 0 else f"lost the best (the best of the others is {found.lost:.3f} worse)"
    agreement = f"; rank correlation with the end {found.agreement:+.2f}" if math.isfinite(found.agreement) else ""
    return (f"ending the worse half at {found.rung:.0%} of the budget would have saved {found.saved:.0%} of it and "
            f"{lost}{agreement}")  # fmt: skip


class SweepSnapshot(Snapshot[SweepPlan, SweepStatus]):
    """A sweep at one moment."""

    noun: ClassVar[str] = "sweep"
    kind_of_result = SweepResult
    drawn_by = "workbench.experiments.sweep.sweep_pictures"

    @property
    def progress(self) -> str:
        """Its progress in one line."""
        counted = [each.status for each in self.now.points]
        most = "at most " if self.plan.sampler == STEPWISE and not self.now.over else ""
        parts = [f"{counted.count('done')} of {most}{self.plan.runs} points done"]
        parts += [f"{counted.count(status)} {status}" for status in ("ended early", "failed") if status in counted]
        return ", ".join([*parts, *underway(reading for _, reading in self.now.runs)])

    @property
    def said(self) -> list[str]:
        """The best point, said so that nobody takes its score for a result; failures; what early stopping does."""
        now = self.now
        failed = [f"{_named(each.point)} failed: {plain(each.error, 300)}"
                  for each in now.points if each.status == "failed"]  # fmt: skip
        found = [*self._best_lines(), *_first(failed)]
        return [*found, *(map(audit_sentence, self.audits()) if now.over else [])]

    @property
    def more(self) -> list[str]:
        """Everything behind the first sentences."""
        return self.said[_FIRST_LINES:]

    def _best_lines(self) -> list[str]:
        plan, now = self.plan, self.now
        if not now.points:
            return ["no point has been drawn: the process that does so takes some seconds to load"]
        if now.best is None:
            return [f"no point has ended with a score{'' if now.over else ' yet'}"]
        best, done = now.points[now.best], [each for each in now.points if each.status == "done"]
        seeds = f"mean of {len(plan.seeds)} seeds" if len(plan.seeds) > 1 else "one seed"
        lines = [f"best of {len(done)}{'' if now.over else ' so far'}: point {now.best} "
                 f"({plain(best.point.label, 120)}) at {best.score:.3f} {UNITS[plan.score]}, {seeds}"]  # fmt: skip
        if stayed := sum(not each.left_floor for each in done):
            lines.append(f"{stayed} of {many(len(done), 'point')} learned nothing beyond word frequencies.")
        lines.append("chosen on its own score, which flatters it: race it on fresh seeds for a claim")
        if math.isfinite(now.spread):
            lines[-1] += f" (the best of {len(done)} equal points would look {now.luck:.3f} better than it is)"
            close = ", ".join(map(str, now.close[:8])) + (", ..." if len(now.close) > 8 else "")
            lines.append(f"seeds differ by {now.spread:.3f} (standard deviation); as good as the best within twice the "
                         f"standard error: {f'points {close}' if close else 'no other point'}")  # fmt: skip
        elif len(plan.seeds) == 1:
            lines.append("one seed each: how much of the differences is luck is not known; two seeds would say it")
        return lines + self._edges()

    def _edges(self) -> list[str]:
        """Name knobs whose best value is the first or the last of its numbers."""
        if self.now.best is None or not self.now.over:
            return []
        values, found = self.now.points[self.now.best].point.values, []
        for path, knob in self.plan.space.items():
            numbers = [each for each in knob.values if isinstance(each, int | float) and not isinstance(each, bool)]
            if len(numbers) == len(knob.values) > 2 and values.get(path) in (min(numbers), max(numbers)):
                found.append(f"{path}={as_typed(values[path])}")
        return [f"at the edge of what was tried: {', '.join(found)}; the best may lie outside"] if found else []

    @property
    def brief(self) -> str:
        """The best point in a few words."""
        now, given_up = self.now, "cancelled; " if self.status == "cancelled" else ""
        if now.best is None:
            return given_up + ("no point has a score" if now.over or given_up else "no best yet")
        best = now.points[now.best]
        floor = "" if best.left_floor else ", nothing learned beyond word frequencies"
        return (f"{given_up}best{'' if now.over else ' so far'} {best.score:.3f} {UNITS[self.plan.score]}: point "
                f"{now.best} ({plain(best.point.label, 40)}){floor}")  # fmt: skip

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row per point: ``point, label, status, score, spread, scores, seconds, measured_seconds, memory_bytes,
        parameters, budget, steps, left_floor, error, runs``, and the knobs by path; None where unknown.

        ``budget`` is that of each run, as text. ``seconds`` of training are those of the sweep's clock, see
        :meth:`seconds_of`; ``memory_bytes`` and ``parameters`` are forecast.
        """
        plan, found = self.plan, []
        for each in self.now.points:
            share = each.point.share
            found.append({
                "point": each.point.index, "label": each.point.label, "status": each.status,
                "score": finite(each.score), "spread": finite(each.spread),
                "scores": [finite(score) for score in each.scores], "seconds": finite(self.seconds_of(each)),
                "measured_seconds": finite(each.seconds), "memory_bytes": share and share.memory_bytes,
                "parameters": share and share.parameters, "budget": share and share.words,
                "steps": share and share.steps, "left_floor": each.left_floor if each.status == "done" else None,
                "error": each.error,
                "runs": {str(seed): plan.run_folder((each.point, seed)).id for seed in plan.seeds
                         if each.readings[seed].status != "missing" and not each.point.error},
                **{path: each.point.values.get(path) for path in plan.space},
            })  # fmt: skip
        return found

    def seconds_of(self, each: PointStatus) -> float:
        """Return a point's time: by the forecast for this machine, which other work does not slow, or as measured."""
        if self.plan.clock == "measured" or each.point.share is None:
            return each.seconds
        return each.point.share.seconds

    @property
    def seconds_title(self) -> str:
        """The title of :meth:`seconds_of`."""
        return SECONDS_TRAINED if self.plan.clock == "measured" else SECONDS_AHEAD

    def fronts(self) -> dict[str, list[int]]:
        """Return the points that no other beats in score and in each of :data:`COSTS`, by the latter."""
        done = [row for row in self.rows if row["status"] == "done" and row["score"] is not None]
        scores = [row["score"] for row in done]
        return {cost: [done[at]["point"] for at in front_of(cost, [number(row[cost]) for row in done], scores)]
                for cost in COSTS}  # fmt: skip

    def shares(self) -> tuple[dict[str, float], str]:
        """Return how much each knob matters, and the caveats; see :mod:`workbench.experiments.sweep.importance`."""
        done = [each for each in self.now.points if each.status == "done"]
        ranges = [path for path, knob in self.plan.space.items() if not knob.values]
        found = importance([each.point.values for each in done], [each.score for each in done], ranges)
        return found, caveat(found, len(done))

    def audits(self) -> list[Audit]:
        """Return what early stopping would have lost; nothing of a sweep that stopped points early itself."""
        plan, first = self.plan, self.plan.seeds[0]
        if plan.early_stopping:
            return []
        done = [each for each in self.now.points if each.status == "done" and math.isfinite(each.score)]
        losses = {each.point.index: losses_at_rungs(plan.run_folder((each.point, first))) for each in done}
        return audit(losses, {each.point.index: each.readings[first].loss for each in done})

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return the points, the best first, those without a score in their order behind."""
        plan, now, kept = self.plan, self.now, self.fronts()
        titles = ["point", "state", *plan.space, f"score ({UNITS[plan.score]})", "seeds", self.seconds_title,
                  "memory, forecast", "parameters", "front"]  # fmt: skip
        lines = []
        for row in sorted(
            self.rows, key=lambda row: (row["status"] != "done", math.inf if row["score"] is None else row["score"])
        ):
            spread = "" if row["spread"] is None else f" ± {row['spread']:.3f}"
            on = ", ".join(cost.removesuffix("_bytes") for cost, points in kept.items() if row["point"] in points)
            lines.append([
                str(row["point"]), self._state(now.points[row["point"]]),
                *(UNKNOWN if row[path] is None else plain(as_typed(row[path])) for path in plan.space),
                decimal(row["score"], 3) + spread, str(len(row["scores"])), decimal(row["seconds"], 1),
                bytes_words(row["memory_bytes"]) if row["memory_bytes"] else UNKNOWN, count(row["parameters"]), on,
            ])  # fmt: skip
        return titles, lines

    def _state(self, each: PointStatus) -> str:
        # Short: the reasons of failures stand among the sentences.
        if each.status == "going":
            return f"going {share_done(each.progress)}"
        if each.status == "done" and not each.left_floor:
            return "nothing learned"
        return "best" if each.point.index == self.now.best else each.status

    @property
    def picks(self) -> list[Pick]:
        """Its points."""
        found = []
        for each in self.now.points:
            score = f": {each.score:.3f}" if each.status == "done" else f" ({each.status})"
            best = " - best" * (each.point.index == self.now.best)
            title = f"{each.point.index}  {plain(each.point.label, 60)}{score}{best}"
            found.append(Pick(f"{each.point.index}", title))
        return found

    @property
    def best(self) -> str | None:
        """The best point."""
        return None if self.now.best is None else f"{self.now.best}"

    def facts(self) -> dict[str, Any]:
        """Return the keys of its result, see :class:`SweepResult`."""
        plan, now, table, (found, left_out) = self.plan, self.now, self.rows, self.shares()
        best = None if now.best is None else {
            "point": now.best, "values": now.points[now.best].point.values, "score": now.points[now.best].score,
            "spread": finite(now.points[now.best].spread), "runs": table[now.best]["runs"],
            "chosen_on": "its own score",
        }  # fmt: skip
        return {
            "best": best, "budget": plan.budget, "clock": plan.clock, "sampler": plan.sampler, "seed": plan.seed,
            "space": {path: asdict(knob) for path, knob in plan.space.items()},
            "early_stopping": plan.early_stopping, "spread": finite(now.spread), "luck": finite(now.luck),
            "close": now.close, "points": table, "pareto": self.fronts(), "importance": found,
            "importance_method": METHOD, "importance_caveat": left_out,
            "would_have_ended": [finite(asdict(each)) for each in self.audits()],
            "recipe": plan.base(each.point for each in now.points), "trained_on": self.trained_on(),
            "cost": asdict(plan.cost),
        }  # fmt: skip
