"""``wb.finetune``: fine-tune an encoder on a task, or open a fine-tuning that any process started."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from workbench.base.errors import RunError
from workbench.base.text import many
from workbench.client.run import Run
from workbench.experiments.experiment import Experiment
from workbench.experiments.experiment_folder import FinetuningFolder
from workbench.experiments.finetune.finetuning_plan import FinetuningPlan, Job, plan_finetuning
from workbench.experiments.finetune.finetuning_status import FinetuningStatus, look
from workbench.experiments.finetune.finetuning_words import FinetuningResult, FinetuningSnapshot
from workbench.experiments.finetune.testing import test
from workbench.experiments.validation import Log
from workbench.store.folder import write_json

if TYPE_CHECKING:
    from workbench.recipes.recipe import Recipe


class Finetuning(Experiment[FinetuningFolder, FinetuningResult]):
    """A fine-tuning that this or any other process started.

    Example:
        >>> wb.experiment("20260131-0815").result["test"]  # doctest: +SKIP
    """

    kind = FinetuningFolder

    @property
    def plan(self) -> FinetuningPlan:
        """Its plan."""
        return FinetuningPlan.read(self.folder)

    def look(self) -> FinetuningStatus:
        """Read the state of its runs."""
        return look(self.folder, self.plan)

    def _snapshot(self, status: str, now: FinetuningStatus | None = None) -> FinetuningSnapshot:
        return FinetuningSnapshot(self.plan, now or self.look(), status)

    def _prepare(self, now: FinetuningStatus, rates: Any) -> FinetuningStatus:
        """Test once what was chosen, as soon as all runs have ended."""
        if now.tested or not now.ended or not now.chosen:
            return now
        self._tell(self.folder.working, now)
        write_json(self.folder.tested, test(self.plan, now))
        return self.look()

    def run_of(self, pick: str) -> Run:
        """Return a run, by its id."""
        folder = self.plan.run_folder(self._job(pick))
        if not folder.path.is_dir():
            raise RunError(f"run '{pick}' has not begun (yet)")
        return Run(folder)

    def recipe_of(self, pick: str) -> Recipe:
        """Return the recipe of a run, by its id."""
        return self.plan.recipe_of(self._job(pick))

    def _job(self, pick: str) -> Job:
        jobs = {self.plan.run_folder(job).id: job for job in self.plan.jobs}
        if pick not in jobs:
            raise RunError(f"{self.folder.noun} '{self.id}' has no run '{pick}'; it has {', '.join(jobs)}")
        return jobs[pick]

    def _ipython_display_(self) -> None:
        self.watch()


def finetune(
    run: Any,
    task: str | Path,
    *,
    data: str | Path | None = None,
    text: str | Sequence[str] = (),
    label: str = "",
    form: Literal["classes", "numbers", "answers"] | None = None,
    rates: Sequence[float] | None = None,
    epochs: float = 3.0,
    batch: int = 16,
    length: int | None = None,
    limit: int | None = None,
    seeds: int | Sequence[int] = 1,
    untrained: bool = False,
    step: int | None = None,
    changes: Sequence[tuple[str, Any]] = (),
    name: str | None = None,
    runs_dir: str | Path | None = None,
    dry_run: bool = False,
    say: Log | None = print,
) -> Finetuning | FinetuningPlan:
    """Fine-tune the encoder of a run on a task at a few learning rates; returns at once.

    Each rate is a run, with a folder, a live view and a place in the queue like all others. The rate with the best
    score on the examples to choose on is tested once, on others. Its scores go into the run of the encoder as well.

    Args:
        run: a run, its id, name or folder; or a folder of a transformers model.
        task: a name (``boolq``, ``mrpc``, ``stsb``, ``squad``, ...), or a file of one's own: CSV, tab-separated or JSON
            lines, or questions as SQuAD has them.
        data: the folder with the tasks; None for ``$WORKBENCH_EVAL``.
        text, label: columns of one's own file; two texts for pairs. form: of its labels; None for what they look like.
        rates: learning rates; None for three that suit the width.
        epochs: how often each example is read. batch: examples per step.
        length: tokens of a row, at most; None for the longest row of the encoder.
        limit: train on a sample of so many examples; None for all.
        seeds: of head, order and dropout: a number of them, or a list; a rate is chosen by the mean.
        untrained: also fine-tune a twin that begins with fresh weights, with a rate of its own.
        step: of the run's checkpoint; None for the newest.
        changes: pairs of path and value for all recipes, ``("objective.pooling", "mean")``.
        name: of the fine-tuning, for :func:`workbench.experiment`.
        runs_dir: the runs folder; None for that of the run.
        dry_run: start nothing, return the plan.
        say: called with lines about what it will take.

    Raises:
        DataError: no such task, files that lack a column (those that they have are listed), labels that training never
            shows. RecipeError: options or changes that do not fit. RunError: no such run or checkpoint, or the folder
            cannot be written. Nothing was launched.

    Example:
        >>> wb.finetune(run, "boolq", data="glue", untrained=True).wait()["test"]  # doctest: +SKIP
        >>> wb.finetune(run, "reviews.csv", text="review", label="stars")  # doctest: +SKIP
    """
    plan = plan_finetuning(
        run, task, data=data, text=text, label=label, form=form, rates=rates, epochs=epochs, batch=batch, length=length,
        limit=limit, seeds=seeds, untrained=untrained, step=step, changes=changes, name=name, runs_dir=runs_dir,
    )  # fmt: skip
    if say is not None:
        counts = ", ".join(f"{count:,} {part}" for part, count in plan.examples.items())
        twin = ", each with an untrained twin" * untrained
        said = ", ".join(f"{rate:g}" for rate in plan.rates)
        say(f"{plan.task}: {counts} examples; {many(len(plan.jobs), 'run')}: rates {said}{twin}")
    if dry_run:
        return plan
    folder = FinetuningFolder(FinetuningFolder.root(plan.runs_dir) / plan.id)
    folder.create(plan.to_dict())
    begun = Finetuning(folder)
    begun.resume()
    return begun
