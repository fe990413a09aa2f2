"""``wb.race``: start a race, or open one that any process started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.base.errors import RunError, unknown
from workbench.base.text import plain
from workbench.client.run import Run
from workbench.experiments.experiment import Experiment
from workbench.experiments.experiment_folder import RaceFolder
from workbench.experiments.launching import refused, stop, withdraw, withdrawn
from workbench.experiments.plan import Score
from workbench.experiments.race.race_plan import REFERENCE, Entry, RacePlan, plan_race
from workbench.experiments.race.race_result import RaceResult
from workbench.experiments.race.race_words import RaceSnapshot, cost_lines
from workbench.experiments.race.sequential import ALPHA, MARGIN_NATS
from workbench.experiments.race.verdicts import RaceStatus, Verdict, status_of
from workbench.experiments.validation import Log

if TYPE_CHECKING:
    from workbench.recipes.recipe import Recipe


class Race(Experiment[RaceFolder, RaceResult]):
    """A race that this or any other process started.

    Example:
        >>> race = wb.experiment("20260131-0815")  # doctest: +SKIP
        >>> print(race.summary)  # doctest: +SKIP
    """

    kind = RaceFolder

    @property
    def plan(self) -> RacePlan:
        """Its plan."""
        return RacePlan.read(self.folder)

    def look(self) -> RaceStatus:
        """Read the state of its runs."""
        cancelled = self.folder.read_state()["status"] == "cancelled"
        return status_of(self.plan, refused(self.folder), withdrawn(self.folder), ended=cancelled)

    def _snapshot(self, status: str, now: RaceStatus | None = None) -> RaceSnapshot:
        return RaceSnapshot(self.plan, now or self.look(), status)

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """Verdicts by arm, at the last look its runs have reached."""
        return self.look().verdicts

    def report(self, path: str | Path | None = None) -> Path:
        """See :meth:`Experiment.report`.

        Raises:
            RunError: nothing is left of its runs; a report that was written before stays.
        """
        if self.status == "finished" and not self.rows:
            raise RunError(f"race '{self.folder.name}': its runs were deleted for good, and their scores with them")
        return super().report(path)

    def _prepare(self, now: RaceStatus, rates: Any) -> RaceStatus:
        plan = self.plan
        for entry, each in now.readings.items():
            # Of an arm that has failed, or of a baseline against which no arm is left.
            if entry in now.wanted:
                continue
            if each.status == "going":
                withdraw(self.folder, plan, entry)
            elif each.status == "stopped" and each.doing not in ("", "stopping"):
                stop([plan.run_folder(entry)], by=f"race {self.id}")
        return now

    def _close(self, now: RaceStatus) -> None:
        seen = self._snapshot("finished", now)
        for verdict in now.verdicts.values():
            self.folder.add_event("verdict", **seen.verdict_json(verdict))

    def run_of(self, pick: str) -> Run:
        """Return the run of an entry, by its title: ``mine seed 3``, ``baseline 0.5x seed 3``."""
        folder = self.plan.run_folder(self._entry(pick))
        if not folder.path.is_dir():
            raise RunError(f"{plain(pick)} has no run (yet); see race.rows")
        return Run(folder)

    def recipe_of(self, pick: str) -> Recipe:
        """Return the recipe of an entry's arm, by the entry's title."""
        from workbench.recipes.recipe import Recipe

        return Recipe(**self.plan.arms[self._entry(pick).arm])

    def _entry(self, title: str) -> Entry:
        plan = self.plan
        entries = {entry.title: entry for entry in plan.entries(len(plan.seeds), plan.others)}
        if title not in entries:
            raise RunError(unknown(f"run of race '{self.id}'", title, entries))
        return entries[title]


def race(
    arms: Mapping[str, Recipe | str] | str,
    budget: str | None = None,
    seeds: int | Sequence[int] = 6,
    *,
    baseline: str | None = None,
    score: Score = "nats",
    reference: Sequence[float] = REFERENCE,
    clock: str = "reference",
    margin: float = MARGIN_NATS,
    alpha: float = ALPHA,
    name: str | None = None,
    runs_dir: str | Path | None = None,
    rates: Any = None,
    initial: Mapping[int, str | Path] | None = None,
    dry_run: bool = False,
    say: Log | None = print,
) -> Race | RacePlan:
    """Race recipes against a baseline over paired seeds at equal budgets; prints the cost, and returns at once.

    Arms are judged after 4, 6 and 10 seeds (up to ``seeds``) by repeated confidence intervals that are jointly valid
    (:mod:`workbench.experiments.race.sequential`): better, worse, equivalent, or undecided. Once an arm is decided, it
    trains no more seeds.

    Args:
        arms: recipes, names of presets, recipe files, or strings such as ``"fast:optimizer.lr=1e-3"``, by name; or all
            in one string, ``"baseline=fast mine=fast:optimizer.lr=1e-3"``.
        budget: per run: ``"60 s"`` of reference time (the time an arm's steps take by the forecast for this machine),
            ``"600 steps"``, ``"1e6 tokens"`` or ``"2e15 flops"``; None for the time of the baseline's own budget.
        seeds: at most this many, from 0 on; or a list of them.
        baseline: name of the arm that the others are compared with; else the one called ``baseline``, else the first.
        score: ``nats`` per token, or ``bits_per_byte``, which also compares tokenizers.
        reference: multiples of the budget at which the baseline also trains, so that a difference can be expressed as a
            speed-up; ``()`` for none.
        clock: ``measured`` counts each run's seconds by its own clock instead.
        margin: nats within which arms count as equivalent. alpha: chance that the race claims a difference where there
            is none, shared by its arms.
        runs_dir: the runs folder; the race's own folder is ``races`` beside it.
        rates: of another machine, see :func:`workbench.forecast`.
        initial: by seed, a checkpoint (a folder ``step-N``) whose weights all arms start from, see
            :func:`workbench.launch`; None draws them from the seed.
        dry_run: start nothing, return the plan.
        say: called with lines about what is being prepared and what the race will take.

    Raises:
        RecipeError: fewer than two arms, unknown names, arms that cannot be compared, a budget that is too small, or a
            recipe that this machine cannot carry out. DataError: text that cannot be prepared. Nothing was launched.
        RunError: the race's folder cannot be written, or its driver not be started.

    Example:
        >>> race = wb.race({"baseline": "fast", "mine": "fast:depth=progressive_drop"}, "60 s")  # doctest: +SKIP
        >>> race.wait()["summary"]  # doctest: +SKIP
    """
    say = say or (lambda line: None)
    plan = plan_race(
        arms, budget, seeds, baseline=baseline, score=score, reference=reference, clock=clock, margin=margin,
        alpha=alpha, name=name, runs_dir=runs_dir, rates=rates, initial=initial, say=say,
    )  # fmt: skip
    for line in cost_lines(plan):
        say(line)
    if dry_run:
        return plan
    return begin(plan)


def begin(plan: RacePlan) -> Race:
    """Write a race's folder and start its driver.

    Raises:
        RunError: the folder cannot be written, or the driver not be started.
    """
    folder = RaceFolder(RaceFolder.root(plan.runs_dir) / plan.id)
    folder.create(plan.to_dict())
    started = Race(folder)
    started.resume()
    return started
