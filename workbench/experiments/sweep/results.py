"""The outcome of a sweep for machines and tables: rows, fronts, importance, and what early stopping would have done."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from workbench.base.json_lines import finite, number
from workbench.base.text import plain
from workbench.experiments.result import ExperimentResult
from workbench.experiments.sweep.early_stopping import Audit, audit
from workbench.experiments.sweep.importance import METHOD, caveat, importance
from workbench.experiments.sweep.plan import SweepPlan
from workbench.experiments.sweep.sentences import audit_sentence, best_lines, failures, progress
from workbench.experiments.sweep.status import PointStanding, Standing, losses_at_rungs
from workbench.experiments.trained_on import trained_on
from workbench.plots.pareto import front_of
from workbench.store.regression import TOLERANCES, require_as_good
from workbench.telemetry.quantities import SECONDS_AHEAD, SECONDS_TRAINED

COSTS = ("seconds", "memory_bytes", "parameters")
"""What losses are held against."""


def rows(plan: SweepPlan, now: Standing) -> list[dict[str, Any]]:
    """One row per point: ``point, label, status, score, spread, scores, seconds, memory_bytes, parameters, budget,
    steps, runs``, and the knobs by path; None where unknown.

    ``budget`` is that of each run, as text. ``seconds`` of training are those of the sweep's clock, see
    :func:`seconds_of`; ``memory_bytes`` and ``parameters`` are forecast.
    """
    found = []
    for each in now.points:
        share = each.point.share
        found.append({
            "point": each.point.index,
            "label": each.point.label,
            "status": each.status,
            "score": finite(each.score),
            "spread": finite(each.spread),
            "scores": [finite(score) for score in each.scores],
            "seconds": finite(seconds_of(plan, each)),
            "measured_seconds": finite(each.seconds),
            "memory_bytes": share and share.memory_bytes,
            "parameters": share and share.parameters,
            "budget": share and share.words,
            "steps": share and share.steps,
            "left_floor": each.left_floor if each.status == "done" else None,
            "error": each.error,
            "runs": {str(seed): plan.run_folder(each.point, seed).id for seed in plan.seeds
                     if each.readings[seed].status != "missing" and not each.point.error},
            **{path: each.point.values.get(path) for path in plan.space},
        })  # fmt: skip
    return found


def seconds_of(plan: SweepPlan, each: PointStanding) -> float:
    """What a point costs in time: by the forecast for this machine, which other work does not slow, or as measured."""
    if plan.clock == "measured" or each.point.share is None:
        return each.seconds
    return each.point.share.seconds


def seconds_title(plan: SweepPlan) -> str:
    """Whose seconds those of :func:`seconds_of` are."""
    return SECONDS_TRAINED if plan.clock == "measured" else SECONDS_AHEAD


def fronts(table: list[dict[str, Any]]) -> dict[str, list[int]]:
    """Points that no other beats in score and in each of :data:`COSTS`, by the latter."""
    done = [row for row in table if row["status"] == "done" and row["score"] is not None]
    scores = [row["score"] for row in done]
    return {
        cost: [done[at]["point"] for at in front_of(cost, [number(row[cost]) for row in done], scores)]
        for cost in COSTS
    }


def shares(plan: SweepPlan, now: Standing) -> tuple[dict[str, float], str]:
    """How much each knob matters, and what that leaves out; see :mod:`workbench.experiments.sweep.importance`."""
    done = [each for each in now.points if each.status == "done"]
    ranges = [path for path, knob in plan.space.items() if not knob.values]
    found = importance([each.point.values for each in done], [each.score for each in done], ranges)
    return found, caveat(found, len(done))


def audits(plan: SweepPlan, now: Standing) -> list[Audit]:
    """What early stopping would have thrown away; nothing of a sweep that stopped points early itself."""
    if plan.early_stopping:
        return []
    done = [each for each in now.points if each.status == "done" and math.isfinite(each.score)]
    first = plan.seeds[0]
    losses = {each.point.index: losses_at_rungs(plan.run_folder(each.point, first)) for each in done}
    return audit(losses, {each.point.index: each.readings[first].loss for each in done})


def summary(
    plan: SweepPlan, now: Standing, status: str, note: str = "", spared: Mapping[int, float] | None = None
) -> str:
    """All that a sweep says, one line each."""
    first, *others = lines(plan, now, note, spared)
    return "\n".join([f"sweep {plan.id} ({plain(plan.name, 60)}) {status}: {first}", *others])


def lines(plan: SweepPlan, now: Standing, note: str = "", spared: Mapping[int, float] | None = None) -> list[str]:
    """What a sweep says, how far it is first."""
    found = [progress(plan, now), *([note] if note else []), *best_lines(plan, now), *failures(now)]
    if now.over:
        found += [audit_sentence(each) for each in audits(plan, now)]
    if spared and now.over:
        better = [index for index in spared if now.points[index].status == "done" and index in (now.best, *now.close)]
        found.append(f"{len(spared)} points that should have ended early went on: {len(better)} of them ended as the "
                     "best, or not told apart from it")  # fmt: skip
    return found


class SweepResult(ExperimentResult):
    """What a sweep says, or says so far: JSON-able, and each key is an attribute, too.

    Keys:
        sweep, name, status, score, budget, clock, sampler, seed, seeds, space, early_stopping: as asked.
        recipe: where all points start, under the budget of their runs.
        points: see :func:`rows`. best: the point with the lowest score, ``chosen_on`` its own; None before there is
            one. spread, luck, close: see :class:`~workbench.experiments.sweep.status.Standing`.
        pareto: points on the front of score against each cost. importance: by knob; importance_method: what that is;
            importance_caveat: what it leaves out.
        would_have_ended: what early stopping would have done, by rung.
        trained_on: see :func:`~workbench.experiments.trained_on.trained_on`. cost, warnings, note, error, summary.
    """

    noun = "sweep"

    @classmethod
    def of(cls, plan: SweepPlan, now: Standing, status: str, note: str = "", error: str = "",
           spared: Mapping[int, float] | None = None) -> SweepResult:  # fmt: skip
        """From one reading of a sweep."""
        table, (found, left_out) = rows(plan, now), shares(plan, now)
        best = None if now.best is None else {
            "point": now.best, "values": now.points[now.best].point.values, "score": now.points[now.best].score,
            "spread": finite(now.points[now.best].spread), "runs": table[now.best]["runs"],
            "chosen_on": "its own score",
        }  # fmt: skip
        return cls(
            sweep=plan.id,
            name=plan.name,
            status=status,
            best=best,
            score=plan.score,
            budget=plan.budget,
            clock=plan.clock,
            sampler=plan.sampler,
            seed=plan.seed,
            seeds=plan.seeds,
            space={path: asdict(knob) for path, knob in plan.space.items()},
            early_stopping=plan.early_stopping,
            spread=finite(now.spread),
            luck=finite(now.luck),
            close=now.close,
            points=table,
            pareto=fronts(table),
            importance=found,
            importance_method=METHOD,
            importance_caveat=left_out,
            would_have_ended=[finite(asdict(each)) for each in audits(plan, now)],
            recipe=plan.base(each.point for each in now.points),
            trained_on=trained_on(plan.run_folder(each.point, seed) for each in now.points for seed in each.readings),
            cost=asdict(plan.cost),
            warnings=plan.warnings,
            note=note,
            error=error,
            summary=summary(plan, now, status, note, spared),
        )

    def require(
        self, reference_score: float | None = None, tolerance: float | None = None, *, budget: str | None = None
    ) -> None:
        """Raise unless it ended, its best point no worse than that of an earlier sweep.

        Args:
            reference_score: of the earlier sweep's best point, in this one's unit; None: not judged.
            tolerance: how much higher this one's may be; None for that of its unit
                (:mod:`workbench.store.regression`).
            budget: of the earlier sweep, as text, empty for the recipe's own; None where nobody knows.

        Raises:
            RunFailed: it failed, was cancelled, or has not ended. TargetMissed: its best point is worse.
        """
        super().require()
        changed = budget is not None and budget != self["budget"]
        own = "the recipe's own"
        note = f"its budget was changed to {self['budget'] or own} from {budget or own}" if changed else ""
        best = self["best"] and self["best"]["score"]
        require_as_good(
            f"sweep '{self['sweep']}': the best point", best, reference_score,
            TOLERANCES[self["score"]] if tolerance is None else tolerance, self["score"], note,
        )  # fmt: skip
