"""The outcome of a tuning for machines."""

from __future__ import annotations

from typing import ClassVar

from workbench.base.errors import TargetMissed
from workbench.base.text import plain
from workbench.experiments.race.race_result import RaceResult
from workbench.experiments.result import ExperimentResult, check_fail_on


class TuningResult(ExperimentResult):
    """The result of a tuning, or its result so far; see :class:`ExperimentResult`.

    Keys:
        tuning, name, status, score, budget, each, division, seeds, race_seeds: as asked.
        stage: ``tuning``; ``nothing paid``; ``tuned, not yet confirmed``; ``confirmed`` or ``not confirmed``.
        recipe: found, or kept so far. changed: by path, the values before and now.
        verdict, difference, interval, speedup, p: of the race, in which the recipe found meets the one before; None
            before it says anything. race: all of it.
        settings: see :attr:`~workbench.experiments.tune.tuning_words.TuningSnapshot.rows`; steps: decisions
            in order. Their scores are of tuning text: evidence, and no result.
        warnings, note, error, summary.
    """

    noun: ClassVar[str] = "tuning"

    def failures(self, fail_on: str) -> dict[str, str]:
        """Return what fails the tuning by one of :data:`workbench.experiments.result.FAIL_ON`, each with its sentence.

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
        """See :attr:`workbench.experiments.race.race_result.RaceResult.gate_note`; of its race."""
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
