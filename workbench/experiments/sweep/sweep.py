"""``wb.sweep``: start a sweep, or open one that any process started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.base.errors import RunError
from workbench.client.run import Run
from workbench.experiments.experiment import Experiment
from workbench.experiments.experiment_folder import SweepFolder
from workbench.experiments.launching import stop
from workbench.experiments.plan import Score
from workbench.experiments.sweep.early_stopping import weak
from workbench.experiments.sweep.points import Point, add_points, read_points
from workbench.experiments.sweep.sweep_plan import SweepPlan, plan_sweep
from workbench.experiments.sweep.sweep_result import SweepResult
from workbench.experiments.sweep.sweep_status import (
    SweepStatus,
    look,
    losses_at_rungs,
    next_point,
    plan_of,
    rates_of,
)  # fmt: skip
from workbench.experiments.sweep.sweep_words import SweepSnapshot, cost_lines
from workbench.experiments.validation import Log
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
        """Its plan; of fewer points where its sampler found no others."""
        return plan_of(self.folder)

    @property
    def points(self) -> list[Point]:
        """The settings drawn so far."""
        return read_points(self.folder)

    def look(self) -> SweepStatus:
        """Read the state of its runs."""
        return look(self.folder)

    def _snapshot(self, status: str, now: SweepStatus | None = None) -> SweepSnapshot:
        plan = self.plan
        return SweepSnapshot(plan, now or look(self.folder, plan), status)

    @property
    def best(self) -> int | None:
        """Index of the point with the lowest score so far, chosen on that score itself; None before there is one."""
        return self.look().best

    def _prepare(self, now: SweepStatus, rates: Any) -> SweepStatus:
        """End weak points, and draw as many others as there is room for."""
        folder, plan = self.folder, self.plan
        if plan.early_stopping and self._end_weak(plan, now):
            now = self.look()
        for each in now.points:
            if each.status == "ended early":
                # Of all seeds, and again where a driver was killed before it did so.
                going = [plan.run_folder((each.point, seed)) for seed, reading in each.readings.items()
                         if reading.status == "going" and reading.doing != "stopping"]  # fmt: skip
                stop(going, by=f"sweep {self.id}")
        busy = sum(reading.status == "going" for _, reading in now.runs)
        room, rates = plan.at_once - busy, rates or rates_of(folder)
        while len(now.wanted) < room and len(now.points) < plan.runs:
            point = next_point(plan, now, rates)
            if point is None and (busy or now.wanted):
                break  # what they come to decides what is tried next
            if point is None:
                folder.add_event("exhausted", points=len(now.points))
                return self.look()
            add_points(folder, [point])
            now = self.look()
        return now

    def _end_weak(self, plan: SweepPlan, now: SweepStatus) -> bool:
        """Write down which points end, since they are behind at a rung; returns whether there were any."""
        first, found = plan.seeds[0], False
        # Of the first seed: who is behind there trains no others.
        losses = {each.point.index: losses_at_rungs(plan.run_folder((each.point, first))) for each in now.points}
        for each in now.points:
            index = each.point.index
            rungs = [rung for rung in losses[index] if weak(index, rung, losses)]
            if each.status != "going" or each.readings[first].status != "going" or not rungs:
                continue
            self.folder.add_event("ended early", point=index, rung=rungs[0], score=losses[index][rungs[-1]])
            found = True
        return found

    def run(self, index: int, seed: int | None = None) -> Run:
        """Return the run of a point.

        Args:
            index: of the point. seed: one of the sweep's; the first by default.

        Raises:
            RunError: no such point or seed, or its run has not begun.
        """
        plan = self.plan
        seed = plan.seeds[0] if seed is None else seed
        if seed not in plan.seeds:
            raise RunError(f"sweep '{self.id}' has no seed {seed}; it has {', '.join(map(str, plan.seeds))}")
        folder = plan.run_folder((self._point(index), seed))
        if not folder.path.is_dir():
            raise RunError(f"point {index} with seed {seed} has no run (yet); see sweep.rows")
        return Run(folder)

    def recipe(self, index: int | None = None) -> Recipe:
        """Return the recipe of a point with the base recipe's own seed, to compose with or to race;
        of the best by default.

        One that was scored on tuning text is given on the whole text of its corpus.

        Raises:
            RunError: no such point, or none is the best yet. RecipeError: the point cannot be trained.
        """
        plan = self.plan
        if index is None and (index := self.best) is None:
            raise RunError(f"sweep '{self.id}' has no best point yet: none has ended with a score")
        from workbench.choices.data.tuning_text import on_own_text

        return on_own_text(plan.recipe_of((self._point(index), plan.recipe["seed"])))

    def run_of(self, pick: str) -> Run:
        """Return the run of a point's first seed, by the point's index as text."""
        return self.run(int(pick))

    def recipe_of(self, pick: str) -> Recipe:
        """Return the recipe of a point, by its index as text."""
        return self.recipe(int(pick))

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
    say: Log | None = print,
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
            if the learning rate has begun to fall by then. A sweep without it reports what it would have lost.
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
    plan, points = plan_sweep(
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
