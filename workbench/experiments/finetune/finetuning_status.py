"""The state of a fine-tuning, read from its runs: scores to choose by, and the rate that they choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from workbench.base.json_lines import finite, number
from workbench.experiments.experiment_folder import FinetuningFolder
from workbench.experiments.finetune.finetuning_plan import FinetuningPlan, Job
from workbench.experiments.launching import refused
from workbench.experiments.readings import Reading, cancelled, reading_of
from workbench.store.evaluations import scores_by_step
from workbench.store.folder import RunFolder, read_object


@dataclass(frozen=True)
class FinetuningStatus:
    """A fine-tuning as its runs and its tests say.

    Attributes:
        runs: every job with its reading. dev: score of each run that is done, on the examples to choose on.
        chosen: the rate that was the best on those, by start, of starts whose runs have all ended.
        tested: what the test came to (:mod:`workbench.experiments.finetune.testing`); empty before it.
    """

    runs: Sequence[tuple[Job, Reading]]
    dev: dict[Job, float]
    chosen: dict[str, float]
    tested: dict[str, Any]

    @property
    def wanted(self) -> list[Job]:
        """Jobs to start, in order."""
        return [job for job, reading in self.runs if reading.status in ("missing", "lost")]

    @property
    def ended(self) -> bool:
        """True once no run goes on."""
        return not self.wanted and all(reading.status != "going" for _, reading in self.runs)

    @property
    def over(self) -> bool:
        """True once the test is done, or there is nothing to test."""
        return self.ended and bool(self.tested or not self.chosen)

    @property
    def failed(self) -> str:
        """Reason why it has no outcome; empty while it may have one."""
        if self.tested.get("error"):
            return str(self.tested["error"])
        errors = [reading.error for _, reading in self.runs if reading.error]
        return "" if not self.ended or "trained" in self.chosen else "; ".join(errors) or "no run has a score"


def look(folder: FinetuningFolder, plan: FinetuningPlan) -> FinetuningStatus:
    """Read the state of a fine-tuning."""
    why = refused(folder)
    readings = {job: reading_of(plan.run_folder(job), why) for job in plan.jobs}
    if folder.read_state()["status"] == "cancelled":
        readings = cancelled(readings)
    dev = {job: score for job, each in readings.items() if each.status == "done"
           if (score := dev_score(plan.run_folder(job), plan)) is not None}  # fmt: skip
    chosen = {}
    for start in plan.recipes:
        mine = {job: each for job, each in readings.items() if job.start == start}
        if all(each.status not in ("missing", "lost", "going") for each in mine.values()):
            means = {rate: [dev[job] for job in mine if job.rate == rate and job in dev] for rate in plan.rates}
            # Of those that trained with every seed; of equal ones the smallest.
            whole = {rate: fmean(found) for rate, found in means.items() if len(found) == len(plan.seeds)}
            if whole:
                chosen[start] = max(sorted(whole), key=lambda rate: whole[rate])
    return FinetuningStatus(list(readings.items()), dev, chosen, read_object(folder.tested))


def dev_score(folder: RunFolder, plan: FinetuningPlan) -> float | None:
    """Return the last score of a run by which rates are chosen; None without one."""
    found = [scores.get(f"{plan.task} dev {plan.metric}") for scores in scores_by_step(folder).values()]
    values = [finite(number(each.value)) for each in found if each is not None]
    return values[-1] if values else None
