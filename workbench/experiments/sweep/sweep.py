"""``wb.sweep``: start a sweep, or open one that any process started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.base.errors import RunError
from workbench.client.run import Run
from workbench.experiments.comparable import Say
from workbench.experiments.experiment import Experiment
from workbench.experiments.plan import Score
from workbench.experiments.shown import Shown
from workbench.experiments.sweep import advance
from workbench.experiments.sweep.plan import Point, SweepPlan, add_points, read_points
from workbench.experiments.sweep.results import SweepResult, lines, rows, summary
from workbench.experiments.sweep.sentences import brief_words, cost_lines
from workbench.experiments.sweep.status import Standing
from workbench.experiments.sweep.sweep_folder import SweepFolder
from workbench.experiments.sweep.tables import table_text
from workbench.experiments.sweep.validate import enter
from workbench.store.folder import write_json

if TYPE_CHECKING:
    from workbench.recipes.recipe import Recipe


class Sweep(Experiment[SweepFolder, SweepResult]):
    """A sweep that this or any other process started.

    Example:
        >>> sweep = wb.experiment("20260131-0815")  # doctest: +SKIP
        >>> wb.race({"baseline": "fast", "best": sweep.recipe(sweep.best)})  # doctest: +SKIP
    """

    kind = SweepFolder
    view = "workbench.jupyter.watch.sweep_view:SweepView"

    @property
    def plan(self) -> SweepPlan:
        """What was asked."""
        return advance.plan_of(self.folder)

    @property
    def points(self) -> list[Point]:
        """The settings drawn so far."""
        return read_points(self.folder)

    @property
    def standing(self) -> Standing:
        """All that its runs say now."""
        return advance.look(self.folder)

    @property
    def best(self) -> int | None:
        """Index of the point with the lowest score so far, chosen on that score itself; None before there is one."""
        return self.standing.best

    @property
    def result(self) -> SweepResult:
        """All of it, JSON-able."""
        return SweepResult.of(self.plan, self.standing, self.status, self.note, self._error, self._spared)

    @property
    def summary(self) -> str:
        """How it stands, in plain words."""
        return summary(self.plan, self.standing, self.status, self.note, self._spared)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row per point; see :func:`workbench.experiments.sweep.results.rows`."""
        return rows(self.plan, self.standing)

    def run(self, index: int, seed: int | None = None) -> Run:
        """The run of a point.

        Args:
            index: of the point. seed: one of the sweep's; the first by default.

        Raises:
            RunError: no such point or seed, or its run has not begun.
        """
        plan = self.plan
        seed = plan.seeds[0] if seed is None else seed
        if seed not in plan.seeds:
            raise RunError(f"sweep '{self.id}' has no seed {seed}; it has {', '.join(map(str, plan.seeds))}")
        folder = plan.run_folder(self._point(index), seed)
        if not folder.path.is_dir():
            raise RunError(f"point {index} with seed {seed} has no run (yet); see sweep.rows")
        return Run(folder)

    def recipe(self, index: int | None = None) -> Recipe:
        """The recipe of a point with the base recipe's own seed, to compose with or to race; of the best by default.

        One that was scored on tuning text is given on the whole text of its corpus.

        Raises:
            RunError: no such point, or none is the best yet. RecipeError: the point cannot be trained.
        """
        plan = self.plan
        if index is None and (index := self.best) is None:
            raise RunError(f"sweep '{self.id}' has no best point yet: none has ended with a score")
        from workbench.choices.data.tuning_text import on_own_text

        return on_own_text(plan.recipe_of(self._point(index), plan.recipe["seed"]))

    @property
    def brief(self) -> str:
        """Its best point, and what that has reached; that it was cancelled, first of all."""
        given_up = "cancelled; " if self.status == "cancelled" else ""
        return given_up + brief_words(self.plan, self.standing, ended=bool(given_up))

    def run_of(self, pick: str) -> Run:
        """The run of a point's first seed, by the point's index as text."""
        return self.run(int(pick))

    def recipe_of(self, pick: str) -> Recipe:
        """The recipe of a point, by its index as text."""
        return self.recipe(int(pick))

    @property
    def table(self) -> str:
        """Its points as text, the best first."""
        return table_text(self.plan, self.standing)

    def shown(self) -> Shown:
        """As it is now, for a page that draws it live."""
        from workbench.experiments.sweep.picture import shown

        plan, now, status = self.plan, self.standing, self.status
        return shown(plan, now, status, lines(plan, now, self.note, self._spared))

    @property
    def _spared(self) -> dict[int, float]:
        return {int(event["point"]): float(event["rung"]) for event in self.folder.read_events()
                if event.get("kind") == "spared"}  # fmt: skip

    def _ipython_display_(self) -> None:
        self.watch()

    def _point(self, index: int) -> Point:
        points = {point.index: point for point in self.points}
        if index not in points:
            raise RunError(f"sweep '{self.id}' has no point {index!r}; it has 0 to {len(points) - 1}")
        return points[index]


def sweep(
    recipe: Recipe | str,
    space: Mapping[str, Any],
    *,
    sampler: str = "grid",
    runs: int | None = None,
    seeds: int | Sequence[int] = 1,
    budget: str | None = None,
    seed: int = 0,
    early_stopping: str | None = None,
    score: Score = "nats",
    clock: str = "reference",
    name: str | None = None,
    runs_dir: str | Path | None = None,
    rates: Any = None,
    dry_run: bool = False,
    say: Say | None = print,
) -> Sweep | SweepPlan:
    """Train one recipe at many settings and compare their held-out scores, times and sizes; returns at once.

    A point that fails is recorded, and the others continue. The best point is chosen on its own score: to learn what it
    is worth, use :func:`workbench.race` on seeds that no sweep has seen.

    Args:
        recipe: where every point starts: a recipe, a preset's name, a recipe file, or ``"fast:depth=full"``.
        space: by dotted path, a list of values or a range ``"1e-4..1e-2"``, logarithmic or integer as the knob is
            declared. A knob that only some of the points' choices have is left out of the others.
        sampler: ``grid`` for all combinations; ``random``; ``stepwise``, which goes knob by knob, starting from the
            recipe, and keeps what pays off (:mod:`workbench.experiments.sweep.stepwise`); or Optuna's ``tpe`` or
            ``gp``, which learn from the points that have ended (``pip install 'workbench[sweep]'``).
        runs: number of points; None for all of a grid.
        seeds: per point: this many from 1000 on, apart from those that races use; or a list of them.
        budget: per run: ``"60 s"`` of reference time, ``"600 steps"``, ``"1e6 tokens"`` or ``"2e15 flops"``; None
            for the recipe's own.
        seed: of the sampler.
        early_stopping: ``halving`` stops a point that is in the worse half at a quarter or half of its budget; refused
            if the learning rate has begun to fall by then. A sweep without it reports what it would have thrown away.
        score: ``nats`` per token, or ``bits_per_byte``, which also compares tokenizers.
        clock: ``measured`` counts each run's seconds by its own clock instead, and relates scores to those; other work
            on the machine then changes results.
        name: of the sweep, for :func:`workbench.experiment`.
        runs_dir: the runs folder; the sweep's own folder is ``sweeps`` beside it.
        rates: of another machine, see :func:`workbench.forecast`.
        dry_run: start nothing, return the plan.
        say: called with lines about what is being prepared and what the sweep will take.

    Raises:
        RecipeError: unknown knobs or values (all in one message), points whose scores do not compare, a budget that is
            too small, or a recipe that this machine cannot carry out. DataError: text that cannot be prepared.
            WorkbenchError: a sampler that is not installed. Nothing was launched.
        RunError: the sweep's folder cannot be written, or its driver not be started.

    Example:
        >>> sweep = wb.sweep("fast", {"optimizer.lr": [1e-3, 2e-3], "depth.kind": ["full", "progressive_drop"]},
        ...                  budget="60 s")  # doctest: +SKIP
        >>> sweep.wait()["best"]  # doctest: +SKIP
    """
    say = say or (lambda line: None)
    plan, points = enter(
        recipe, space, sampler=sampler, runs=runs, seeds=seeds, budget=budget, seed=seed,
        early_stopping=early_stopping, score=score, clock=clock, name=name, runs_dir=runs_dir, rates=rates, say=say,
    )  # fmt: skip
    for line in cost_lines(plan, points):
        say(line)
    if dry_run:
        return plan
    begun = begin(plan, points, rates)
    begun.resume()
    return begun


def begin(plan: SweepPlan, points: Sequence[Point], rates: Any = None) -> Sweep:
    """Write a sweep's folder; nobody drives it yet.

    Args:
        rates: by which its driver sizes the points that it draws; None for those of its machine.

    Raises:
        RunError: the folder cannot be written.
    """
    folder = SweepFolder(SweepFolder.root(plan.runs_dir) / plan.id)

    def fill() -> None:
        add_points(folder, points)
        if rates is not None:
            write_json(folder.rates, rates.model_dump(mode="json"))

    folder.create(plan.to_dict(), fill)
    return Sweep(folder)
