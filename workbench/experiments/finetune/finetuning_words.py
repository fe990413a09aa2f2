"""A fine-tuning in plain words, and its outcome for machines."""

from __future__ import annotations

from typing import Any, ClassVar

from workbench.base.text import decimal, plain
from workbench.experiments.finetune.finetuning_plan import FinetuningPlan
from workbench.experiments.finetune.finetuning_status import FinetuningStatus
from workbench.experiments.finetune.testing import in_words
from workbench.experiments.result import ExperimentResult
from workbench.experiments.snapshot import Pick, Snapshot
from workbench.experiments.words import underway

PUBLISHED = (
    "the paper's F1 of 90.5 needs BERT-large (24 layers x 1,024) trained with LANS on Wikipedia and BooksCorpus, 192 "
    "machines of 8 GPUs for 54 minutes, and then the 87,599 questions of SQuAD's own training file"
)
"""Said under a score on SQuAD (Zheng et al. 2020, arXiv 2006.13484)."""


class FinetuningResult(ExperimentResult):
    """The result of a fine-tuning, or its result so far; see :class:`ExperimentResult`.

    Keys:
        finetuning, name, status, task, encoder, score (that rates are chosen by), seeds, rates, examples: as asked.
        chosen: learning rate by start. dev: see :attr:`FinetuningSnapshot.rows`. test: mean by start and score;
            spread: over seeds, None of one; baseline: scores of ``baseline_kind``. runs: ids of the chosen runs.
        warnings, note, error, summary.
    """

    noun: ClassVar[str] = "finetuning"


class FinetuningSnapshot(Snapshot[FinetuningPlan, FinetuningStatus]):
    """A fine-tuning at one moment."""

    noun: ClassVar[str] = "finetuning"
    kind_of_result = FinetuningResult
    drawn_by = "workbench.experiments.finetune.finetuning_pictures"

    @property
    def progress(self) -> str:
        """Its progress in one line."""
        done = sum(reading.status == "done" for _, reading in self.now.runs)
        parts = [f"{done} of {len(self.now.runs)} runs done", *underway(reading for _, reading in self.now.runs)]
        failed = sum(reading.status == "failed" for _, reading in self.now.runs)
        parts += [f"{failed} failed"] * bool(failed) + ["testing"] * (self.now.ended and not self.now.over)
        return ", ".join(parts)

    @property
    def said(self) -> list[str]:
        """Scores of the test beside twin and baseline, then what failed."""
        plan, tests = self.plan, self.now.tested
        lines = []
        for name in tests.get("scores", {}).get("trained", {}):
            beside = [f"{start} {in_words(scores[name])}" for start, scores in tests["scores"].items()]
            base = f"{tests['baseline_kind']} {tests['baseline'][name]:.4f}"
            lines.append(f"{plan.task} {name}: {', '.join([*beside, base])}")
        if lines:
            rates = ", ".join(f"{start} {rate:g}" for start, rate in self.now.chosen.items())
            others = f"rates chosen on {plan.examples['dev']:,} others: {rates}"
            lines.append(f"on {tests['examples']:,} test examples, scored once; {others}")
            lines += [PUBLISHED] * (plan.task == "squad")
        return lines + [plain(reading.error, 300) for _, reading in self.now.runs if reading.error]

    @property
    def brief(self) -> str:
        """The score that rates are chosen by, of the test."""
        found = self.now.tested.get("scores", {}).get("trained", {}).get(self.plan.metric)
        return f"{self.plan.task} {self.plan.metric} {in_words(found)}" if found else self.progress

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Its runs: start, rate, seed, status, score on the examples to choose on, and whether it was chosen."""
        plan, now = self.plan, self.now
        return [
            {**job._asdict(), "status": reading.doing or reading.status, "progress": reading.progress,
             "dev": now.dev.get(job), "chosen": now.chosen.get(job.start) == job.rate, "run": plan.run_folder(job).id}
            for job, reading in now.runs
        ]  # fmt: skip

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return titles and rows of text."""
        titles = ["start", "rate", "seed", "status", f"dev {self.plan.metric}", "chosen"]
        return titles, [
            [row["start"], f"{row['rate']:g}", str(row["seed"]), row["status"], decimal(row["dev"], 4),
             "yes" * row["chosen"]] for row in self.rows
        ]  # fmt: skip

    def facts(self) -> dict[str, Any]:
        """Return the keys of its result that only its kind has."""
        from statistics import fmean, stdev

        plan, now = self.plan, self.now
        scores = now.tested.get("scores", {})
        return {
            "task": plan.task, "encoder": {"folder": plan.encoder.folder, "step": plan.encoder.step},
            "rates": plan.rates, "examples": plan.examples, "chosen": now.chosen, "dev": self.rows,
            "test": {start: {name: fmean(found) for name, found in of.items()} for start, of in scores.items()},
            "spread": {start: {name: stdev(found) if len(found) > 1 else None for name, found in of.items()}
                       for start, of in scores.items()},
            "baseline": now.tested.get("baseline", {}), "baseline_kind": now.tested.get("baseline_kind", ""),
            "runs": {row["run"]: row["start"] for row in self.rows if row["chosen"]},
        }  # fmt: skip

    def result(self) -> ExperimentResult:
        """Return all of it, JSON-able."""
        return self.kind_of_result({**super().result(), "score": self.plan.metric})

    @property
    def picks(self) -> list[Pick]:
        """Its runs."""
        return [Pick(row["run"], f"{row['start']}, rate {row['rate']:g}, seed {row['seed']}", single=True)
                for row in self.rows if row["status"] != "missing"]  # fmt: skip

    @property
    def best(self) -> str | None:
        """The chosen run of the encoder."""
        return next((row["run"] for row in self.rows if row["chosen"] and row["start"] == "trained"), None)
