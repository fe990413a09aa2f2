"""The outcome of a tuning for machines: the recipe that was found, all that was tried, and what the race says of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from workbench.base.errors import TargetMissed
from workbench.base.json_lines import finite
from workbench.base.text import plain
from workbench.experiments.race.results import RaceResult, check_fail_on
from workbench.experiments.result import ExperimentResult
from workbench.experiments.sweep import results as sweeping
from workbench.experiments.sweep.stepwise import Step
from workbench.experiments.tune.plan import TuningPlan
from workbench.experiments.tune.sentences import summary, why
from workbench.experiments.tune.status import Standing


def rows(now: Standing) -> list[dict[str, Any]]:
    """One row per setting: ``point, changed, status, tuning_score, scores, kept, error, runs``, and the knobs by path.

    ``changed`` are its values that differ from the first setting, the recipe as it is; ``scores`` are by seed.
    """
    table = sweeping.rows(now.sweep_plan, now.sweep)
    kept = {0, *(step.best.point for step in now.steps if step.kept)}
    first = now.sweep.points[0].point.values if now.sweep.points else {}
    return [
        {
            "point": row["point"],
            "changed": {path: value for path, value in now.sweep.points[row["point"]].point.values.items()
                        if first.get(path) != value},
            "status": row["status"],
            "tuning_score": row["score"],
            "scores": row["scores"],
            "kept": row["point"] in kept,
            "error": row["error"],
            "runs": row["runs"],
            **{path: row[path] for path in now.sweep_plan.space},
        }
        for row in table
    ]  # fmt: skip


def _step(step: Step, score: str) -> dict[str, Any]:
    tried = [{**each._asdict(), "gain": finite(each.gain)} for each in step.tried]
    return {**asdict(step), "tried": tried, "needed": finite(step.needed), "kept": step.kept, "why": why(step, score)}


class TuningResult(ExperimentResult):
    """What a tuning says, or says so far: JSON-able, and each key is an attribute, too.

    Keys:
        tuning, name, status, score, budget, each, division, seeds, race_seeds: as asked.
        stage: ``tuning``; ``nothing paid``; ``tuned, not yet confirmed``; ``confirmed`` or ``not confirmed``.
        recipe: what was found, or is kept so far. changed: by path, the values before and now.
        verdict, difference, interval, speedup, p: of the race, in which the recipe found meets the one before; None
            before it says anything. race: all of it.
        settings: see :func:`rows`; steps: what was decided, in order, and why. Their scores are of tuning text, chosen
            among: evidence, and no result.
        warnings, note, error, summary.
    """

    noun = "tuning"

    @classmethod
    def of(cls, plan: TuningPlan, now: Standing, status: str, note: str = "", error: str = "") -> TuningResult:
        """From one reading of a tuning."""
        race = None
        if now.race is not None and now.race_plan is not None:
            race = RaceResult.of(now.race_plan, now.race, plan.race.read_state()["status"])
        return cls(
            tuning=plan.id,
            name=plan.name,
            status=status,
            stage=now.stage,
            **{key: race and race[key] for key in ("verdict", "difference", "interval", "speedup", "p")},
            recipe=now.recipe.to_dict(),
            changed={path: list(values) for path, values in now.changed.items()},
            budget=plan.budget,
            each=plan.each,
            division=asdict(plan.division),
            score=plan.score,
            seeds=plan.seeds,
            race_seeds=plan.race_seeds,
            before=plan.recipe,
            steps=[_step(step, plan.score) for step in now.steps],
            settings=rows(now),
            race=race and dict(race),
            warnings=plan.warnings,
            note=note,
            error=error,
            summary=summary(plan, now, status, note, error),
        )

    def failures(self, fail_on: str) -> dict[str, str]:
        """What fails the tuning by one of :data:`workbench.experiments.race.results.FAIL_ON`, each with its sentence.

        It is its race that is judged; where nothing paid there is none, and what was found is not better.

        Raises:
            WorkbenchError: there is no such ``fail_on``.
        """
        check_fail_on(fail_on)
        if self["race"] is not None:
            return RaceResult(self["race"]).failures(fail_on)
        nothing = self["stage"] == "nothing paid" and fail_on == "not-better"
        return {"tuned": f"tuning {plain(self['name'])} found nothing that pays"} if nothing else {}

    @property
    def gate_note(self) -> str:
        """See :attr:`workbench.experiments.race.results.RaceResult.gate_note`; of its race."""
        return "" if self["race"] is None else RaceResult(self["race"]).gate_note

    def require(self, fail_on: str = "never") -> None:
        """Raise unless the tuning ended and its race does not fail it: the last line of a notebook that CI judges.

        Raises:
            RunFailed: it failed, was cancelled, or has not ended.
            TargetMissed: what was found is what ``fail_on`` names.
        """
        failed = self.failures(fail_on)
        super().require()
        if failed:
            raise TargetMissed("; ".join(failed.values()))
