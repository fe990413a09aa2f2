"""The outcome of a sweep for machines."""

from __future__ import annotations

from typing import ClassVar

from workbench.experiments.result import ExperimentResult
from workbench.store.regression import TOLERANCES, require_as_good


class SweepResult(ExperimentResult):
    """The result of a sweep, or its result so far; see :class:`ExperimentResult`.

    Keys:
        sweep, name, status, score, budget, clock, sampler, seed, seeds, space, early_stopping: as asked.
        recipe: where all points start, under the budget of their runs.
        points: see :attr:`~workbench.experiments.sweep.sweep_words.SweepSnapshot.rows`. best: the point with the lowest
            score, ``chosen_on`` its own; None before there is one. spread, luck, close: see
            :class:`~workbench.experiments.sweep.sweep_status.SweepStatus`.
        pareto: points on the front of score against each cost. importance: by knob; importance_method: its definition;
            importance_caveat: its limits.
        would_have_ended: points that early stopping would have ended, by rung.
        trained_on: see :func:`~workbench.experiments.readings.trained_on`. cost, warnings, note, error, summary.
    """

    noun: ClassVar[str] = "sweep"

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
