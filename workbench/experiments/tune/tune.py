"""``wb.tune``: find a recipe within a total budget, or open a tuning that any process started."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from workbench.base.errors import RunError, WorkbenchError
from workbench.client.run import Run
from workbench.experiments.experiment import Experiment
from workbench.experiments.experiment_folder import ENDED, ExperimentFolder, TuningFolder
from workbench.experiments.plan import Score
from workbench.experiments.race.race import Race
from workbench.experiments.race.race_plan import plan_race
from workbench.experiments.sweep.sweep import Sweep
from workbench.experiments.sweep.sweep import begin as begin_sweep
from workbench.experiments.sweep.sweep_plan import SweepPlan
from workbench.experiments.sweep.sweep_status import rates_of
from workbench.experiments.tune.tuning_plan import BEFORE, SHARE, TUNED, TuningPlan, plan_tuning
from workbench.experiments.tune.tuning_result import TuningResult
from workbench.experiments.tune.tuning_status import TuningStatus, status_of
from workbench.experiments.tune.tuning_words import TuningSnapshot, cost_lines
from workbench.experiments.validation import Log
from workbench.store.folder import write_json
from workbench.store.state import exclusive

if TYPE_CHECKING:
    from workbench.recipes.recipe import Recipe

_driven: dict[ExperimentFolder, FileLock] = {}
"""Locks of the sweeps and races that this process drives."""


class Tuning(Experiment[TuningFolder, TuningResult]):
    """A tuning that this or any other process started.

    Example:
        >>> tuning = wb.experiment("20260131-0815")  # doctest: +SKIP
        >>> tuning.recipe.save("tuned.json")  # doctest: +SKIP
    """

    kind = TuningFolder

    @property
    def plan(self) -> TuningPlan:
        """Its plan."""
        return TuningPlan.read(self.folder)

    def look(self) -> TuningStatus:
        """Read the state of its stages."""
        return status_of(self.plan)

    def _snapshot(self, status: str, now: TuningStatus | None = None) -> TuningSnapshot:
        return TuningSnapshot(self.plan, now or self.look(), status)

    @property
    def stage(self) -> str:
        """The stage of its claim: ``tuned, not yet confirmed`` until its race is over."""
        return self.look().stage

    @property
    def recipe(self) -> Recipe:
        """The recipe kept so far; once the tuning has ended, the one it found. Its seed is the original recipe's."""
        return self.look().recipe

    @property
    def sweep(self) -> Sweep:
        """The settings that were tried, with scores on tuning text: evidence, not the result."""
        return Sweep(self.plan.sweep)

    @property
    def race(self) -> Race:
        """The recipe found against the original one: the result.

        Raises:
            RunError: it has not begun, or nothing was found that pays off.
        """
        race, stage = self.plan.race, self.stage
        if not race.plan.is_file():
            raise RunError(f"tuning '{self.id}' has no race: " + (
                "nothing that was tried pays" if stage == "nothing paid" else f"it is {stage}"))  # fmt: skip
        return Race(race)

    def advance(self, start: Callable[..., Run] | None = None, rates: Any = None) -> TuningStatus:
        """See :meth:`Experiment.advance`: its sweep goes on, then its race does, then it ends."""
        folder = self.folder
        with exclusive(folder.path):
            plan, status = self.plan, folder.read_state()["status"]
            if status in ENDED:
                return self.look()
            if _carried(Sweep(plan.sweep), start, rates):
                return self._go_on(status)
            seen = self._snapshot(status)
            if why := _ended_badly(plan.sweep):
                return self._end("failed", why)
            if not seen.now.changed:
                return self._end("finished")
            if not plan.race.plan.is_file():
                if why := seen.cannot_race():
                    return self._end("failed", why)
                try:
                    self._begin_race(seen, rates or rates_of(plan.sweep))
                except RunError:
                    raise
                except WorkbenchError as error:
                    return self._end("failed", f"what was found cannot be raced: {error}")
            if _carried(Race(plan.race), start, rates):
                return self._go_on(status)
            why = _ended_badly(plan.race)
            return self._end("failed" if why else "finished", why)

    def _begin_race(self, seen: TuningSnapshot, rates: Any) -> None:
        plan, folder = seen.plan, self.folder
        race = plan_race({BEFORE: plan.base(), TUNED: seen.now.recipe}, plan.each, plan.race_seeds, score=plan.score,
                         name=plan.name, runs_dir=plan.runs_dir, rates=rates)  # fmt: skip
        write_json(folder.evidence, dict(seen.result()))
        folder.add_event("tuned", changed={path: list(values) for path, values in seen.now.changed.items()})
        # What a driver that was killed left there is no race yet: its plan is written last.
        shutil.rmtree(plan.race.path, ignore_errors=True)
        plan.race.create(replace(race, id=plan.id, folder=plan.folder, part_of=folder.tag).to_dict())

    def _go_on(self, status: str) -> TuningStatus:
        now = self.look()
        self._tell(status, now)
        return now

    def _end(self, status: str, error: str = "") -> TuningStatus:
        seen = replace(self._snapshot(status), error=error)
        write_json(self.folder.evidence, dict(seen.result()))
        self.folder.write_state(status, error)
        return seen.now

    def _stop_runs(self) -> list[str]:
        plan, stopped = self.plan, list[str]()
        for part in (Sweep(plan.sweep), Race(plan.race)):
            if part.folder.plan.is_file():
                with suppress(RunError):  # it has ended
                    stopped += part.cancel()
        return stopped

    def run_of(self, pick: str) -> Run:
        """Return the run of a setting, by its index as text, or of the race, by its title."""
        return self._stage_of(pick).run_of(pick)

    def recipe_of(self, pick: str) -> Recipe:
        """Return the recipe of a setting, by its index as text, or of an arm of the race, by the title of a run."""
        return self._stage_of(pick).recipe_of(pick)

    def _stage_of(self, pick: str) -> Sweep | Race:
        return self.sweep if pick.isdecimal() else self.race


def _carried(part: Sweep | Race, start: Callable[..., Run] | None, rates: Any) -> bool:
    """Bring a stage forward, unless it has ended or somebody else does; returns whether it goes on."""
    folder = part.folder
    if folder.read_state()["status"] in ENDED:
        return False
    lock = _driven.setdefault(folder, folder.driver_lock())
    if not lock.is_locked:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return folder.read_state()["status"] not in ENDED
    part.advance(start, rates)
    if folder.read_state()["status"] not in ENDED:
        return True
    _driven.pop(folder).release()
    return False


def _ended_badly(part: ExperimentFolder) -> str:
    """Return why a stage has no outcome; empty where it has."""
    state = part.read_state()
    why = f": {state['message']}" if state["message"] else ""
    return "" if state["status"] == "finished" else f"its {part.noun} {state['status']}{why}"


def tune(
    recipe: Recipe | str,
    budget: str,
    axes: Mapping[str, Any] | Collection[str] | None = None,
    *,
    each: str | None = None,
    seeds: int | Sequence[int] = 2,
    race_seeds: int | Sequence[int] | None = None,
    share: float = SHARE,
    score: Score = "nats",
    name: str | None = None,
    runs_dir: str | Path | None = None,
    rates: Any = None,
    dry_run: bool = False,
    say: Log | None = print,
) -> Tuning | TuningPlan:
    """Find a better recipe within a total budget, and race it to measure what it is worth; returns at once.

    First a stepwise sweep (:mod:`workbench.experiments.sweep.stepwise`) goes knob by knob, rate and warm-up first, and
    keeps what gains more than seeds explain. It trains on its own seeds and scores on text held back from training, so
    that nothing is chosen on the text that results are scored on. Then the recipe it found races the original one, on
    fresh seeds and the held-out text of all results: the difference, interval and speed-up are the result, and until
    the race is over the recipe is *tuned, not yet confirmed*. Every run has the same reference time.

    Args:
        recipe: where to start: a recipe, a preset's name, a recipe file, or ``"fast:depth=full"``.
        budget: total time of both stages, by the forecast for this machine: ``"2 hours"``.
        axes: names of :data:`workbench.experiments.tune.axes.AXES`, all by default; or values and ranges by dotted
            path, as :func:`workbench.sweep` takes them, in the order in which they are tried.
        each: time per run, ``"60 s"``; None for what the recipe's own budget takes.
        seeds: to choose settings on: this many from 1000 on, or a list; at least two, to tell gains from luck.
        race_seeds: at most this many from 0 on, or a list; None for 10, 6 or 4, as many as the budget has room for.
        share: of the budget, that settings may take before the race has ten seeds.
        score: ``nats`` per token, or ``bits_per_byte``, which also compares tokenizers.
        name: of the tuning, for :func:`workbench.experiment`.
        runs_dir: the runs folder; the tuning's own folder is ``tunings`` beside it.
        rates: of another machine, see :func:`workbench.forecast`.
        dry_run: start nothing, return the plan.
        say: called with lines about what is being prepared and how the budget is divided.

    Raises:
        RecipeError: unknown knobs, nothing to tune, settings whose scores do not compare, a budget that is too small
            (the message says what it takes), or a recipe that this machine cannot carry out. DataError: text that
            cannot be prepared. Nothing was launched.
        RunError: a folder cannot be written, or the driver not be started.

    Example:
        >>> tuning = wb.tune("fast", "2 hours", each="60 s")  # doctest: +SKIP
        >>> print(tuning.wait())  # doctest: +SKIP
        >>> wb.launch(tuning.recipe)  # doctest: +SKIP
    """
    say = say or (lambda line: None)
    plan, sweep = plan_tuning(
        recipe, budget, axes, each=each, seeds=seeds, race_seeds=race_seeds, share=share, score=score, name=name,
        runs_dir=runs_dir, rates=rates, say=say,
    )  # fmt: skip
    for line in cost_lines(plan, sweep):
        say(line)
    if dry_run:
        return plan
    begun = begin(plan, sweep, rates)
    begun.resume()
    return begun


def begin(plan: TuningPlan, sweep: SweepPlan, rates: Any = None) -> Tuning:
    """Write the folders of a tuning and of its sweep; nobody drives them yet.

    Args:
        rates: see :func:`workbench.experiments.sweep.sweep.begin`.

    Raises:
        RunError: a folder cannot be written.
    """
    folder = TuningFolder(TuningFolder.root(plan.runs_dir) / plan.id)
    folder.create(plan.to_dict(), lambda: begin_sweep(sweep, [], rates))
    return Tuning(folder)
