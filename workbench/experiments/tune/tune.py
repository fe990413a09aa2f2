"""``wb.tune``: find a recipe within a total budget, or open a tuning that any process started."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.base.errors import RunError
from workbench.base.text import plain
from workbench.client.run import Run
from workbench.experiments.comparable import Say
from workbench.experiments.experiment import Experiment
from workbench.experiments.plan import Score
from workbench.experiments.race.race import Race
from workbench.experiments.race.sentences import brief_words
from workbench.experiments.shown import Shown
from workbench.experiments.sweep.plan import SweepPlan
from workbench.experiments.sweep.sweep import Sweep
from workbench.experiments.sweep.sweep import begin as begin_sweep
from workbench.experiments.tune.plan import TuningPlan
from workbench.experiments.tune.results import TuningResult, rows
from workbench.experiments.tune.sentences import TRIED, cost_lines, summary
from workbench.experiments.tune.status import Standing, standing
from workbench.experiments.tune.tuning_folder import TuningFolder
from workbench.experiments.tune.validate import SHARE, enter, first_round

if TYPE_CHECKING:
    from workbench.recipes.recipe import Recipe


class Tuning(Experiment[TuningFolder, TuningResult]):
    """A tuning that this or any other process started.

    Example:
        >>> tuning = wb.experiment("20260131-0815")  # doctest: +SKIP
        >>> tuning.recipe.save("tuned.json")  # doctest: +SKIP
    """

    kind = TuningFolder

    @property
    def plan(self) -> TuningPlan:
        """What was asked."""
        return TuningPlan.read(self.folder)

    @property
    def standing(self) -> Standing:
        """All that its runs say now."""
        return standing(self.plan)

    @property
    def stage(self) -> str:
        """How far its claim is: ``tuned, not yet confirmed`` until its race is over."""
        return self.standing.stage

    @property
    def recipe(self) -> Recipe:
        """The recipe kept so far; once the tuning has ended, the one it found. Its seed is the original recipe's."""
        return self.standing.recipe

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

    @property
    def brief(self) -> str:
        """How far its claim is, with the verdict of its race; of one that will not get further that, first of all."""
        now, status = self.standing, self.status
        if status in ("cancelled", "failed"):
            return status if now.stage == "tuning" else f"{status}; {now.stage}"
        raced = brief_words(now.race.verdicts.values()) if now.race is not None else ""
        return "; ".join(filter(None, (now.stage, raced)))

    @property
    def result(self) -> TuningResult:
        """All of it, JSON-able; verdict and difference are those of the race."""
        return TuningResult.of(self.plan, self.standing, self.status, self.note, self._error)

    @property
    def summary(self) -> str:
        """How it stands, in plain words."""
        return summary(self.plan, self.standing, self.status, self.note, self._error)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row per setting; see :func:`workbench.experiments.tune.results.rows`."""
        return rows(self.standing)

    @property
    def table(self) -> str:
        """Its settings as text, in the order in which they were tried."""
        from workbench.experiments.tune.report import table_text

        return table_text(self.plan, self.standing)

    def shown(self) -> Shown:
        """As it is now, for a page that draws it live: pictures of its race, once that has begun, and of each knob."""
        from workbench.experiments.tune.report import table_html

        plan, now, status = self.plan, self.standing, self.status
        sweep, race = self.sweep.shown(), Race(plan.race).shown() if now.race is not None else None
        knobs = {key: title for key, title in sweep.figures.items() if key.startswith("knob/")}

        def of(key: str) -> Shown:
            return sweep if key in knobs or race is None else race

        head, *lines = summary(plan, now, status, self.note, self._error).splitlines()
        steps = [line for line in lines if line.startswith("  ")]
        return Shown(
            f"Tuning {plain(plan.name, 60)}", status,
            [head.partition(": ")[2], *(line for line in lines if line not in (TRIED, *steps))],
            (race.table if race else "") + table_html(plan, now), {**(race.figures if race else {}), **knobs},
            lambda key: of(key).figure(key), lambda key: of(key).numbers(key), [line.strip() for line in steps],
            [*sweep.picks, *(race.picks if race else ())], None if now.kept_point is None else f"{now.kept_point}",
            now.going,
        )  # fmt: skip

    def run_of(self, pick: str) -> Run:
        """The run of a setting, by its index as text, or of the race, by its title."""
        return self._stage_of(pick).run_of(pick)

    def recipe_of(self, pick: str) -> Recipe:
        """The recipe of a setting, by its index as text, or of an arm of the race, by the title of a run."""
        return self._stage_of(pick).recipe_of(pick)

    def _stage_of(self, pick: str) -> Sweep | Race:
        return self.sweep if pick.isdecimal() else self.race


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
    say: Say | None = print,
) -> Tuning | TuningPlan:
    """Find a better recipe within a total budget, and race it to measure what it is worth; returns at once.

    First a stepwise sweep (:mod:`workbench.experiments.sweep.stepwise`) goes knob by knob, rate and warm-up first, and
    keeps
    what gains more than seeds explain. It trains on its own seeds and scores on text held back from training, so that
    nothing is chosen on the text that results are scored on. Then the recipe it found races the original one, on fresh
    seeds and the held-out text of all results: the difference, interval and speed-up are the result, and until the race
    is over the recipe is *tuned, not yet confirmed*. Every run has the same reference time.

    Args:
        recipe: where to start: a recipe, a preset's name, a recipe file, or ``"fast:depth=full"``.
        budget: total time of both stages, by the forecast for this machine: ``"2 hours"``.
        axes: names of :data:`workbench.experiments.tune.axes.AXES`, all by default; or values and ranges by dotted
        path, as
            :func:`workbench.sweep` takes them, in the order in which they are tried.
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
    plan, sweep = enter(
        recipe, budget, axes, each=each, seeds=seeds, race_seeds=race_seeds, share=share, score=score, name=name,
        runs_dir=runs_dir, rates=rates, say=say,
    )  # fmt: skip
    for line in cost_lines(plan, sweep, first_round(sweep)):
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
