"""The course of a run: which rows each step reads, by what the run has recorded and, beyond, by its schedules."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from workbench.base.errors import RunError
from workbench.choices.progress import Progress
from workbench.choices.schedules.schedule import Schedule
from workbench.recipes.recipe import Recipe
from workbench.store.effective_knobs import Turn, turns_until
from workbench.store.folder import RunFolder, read_object
from workbench.store.origin import origin_of
from workbench.store.state import read_state
from workbench.telemetry.columns import Columns
from workbench.telemetry.downsample import read_columns
from workbench.telemetry.streams import stream_path
from workbench.training.batch_size import BatchSize

# Shape legend: S steps.

ROWS, LENGTH = "data.batch_size", "data.sequence_length"
"""Scalars in which a run records the batch of a step."""
MOST_STEPS = 1_000_000
"""Steps ahead that a scheduled batch is followed for: ten seconds."""


class Step(NamedTuple):
    """The batch of a step.

    Attributes:
        progress: before it. rows, length: of its batch, in tokens per row. recipe: with the knobs of that moment.
    """

    progress: Progress
    rows: int
    length: int
    recipe: Recipe


class Steps(NamedTuple):
    """Batches of many steps, (S,) each, int64: their numbers, tokens before them, rows and tokens per row."""

    step_S: np.ndarray
    tokens_S: np.ndarray
    rows_S: np.ndarray
    length_S: np.ndarray


class Course:
    """Batches of a recipe that may be trained, or of a run, step by step; steps are counted from 0.

    Args:
        recipe: as launched.
        folder: of the run; None for a recipe.

    Attributes:
        done: steps that the run has taken so far, and tokens it has read in them. begun: the first step of its own,
            which of a fork is not 0. last: number of steps when the budget is spent, as far as it can be known; else 0.
    """

    def __init__(self, recipe: Recipe, folder: RunFolder | None = None) -> None:
        self.recipe, self._folder = recipe, folder
        self.done, tokens, seconds, self.begun = 0, 0, 0.0, 0
        self._recorded = Steps(*np.empty((4, 0), np.int64))
        self._clock = np.empty(0, np.int64), np.empty(0)
        self._overrides: dict[str, object] = {}
        self._turns: list[Turn] = []
        self._recipes: dict[int, Recipe] = {}
        """By the number of knobs that were turned."""
        if folder is not None:
            columns = read_columns(stream_path(folder.telemetry, "scalars"))
            self._recorded, self._clock = recorded(columns), (columns.clock("step"), columns.clock("seconds"))
            if (origin := origin_of(folder)) is not None:
                self.begun, tokens, seconds = origin.step, int(origin.tokens), origin.seconds
                overrides = read_object(folder.origin).get("overrides")
                self._overrides = overrides if isinstance(overrides, dict) else {}
            self.done = max(self.begun, int(self._clock[0].max(initial=0)), read_state(folder).step)
            self._turns = turns_until(folder, self.done)
        self._start = Progress(self.begun, tokens, seconds, recipe.budget)
        # Of a run that found the size of its micro-batches itself, its records say the rest.
        self._limit = recipe.engine().micro_batch_size

    def at(self, step: int) -> Step:
        """Return the batch of a step.

        Raises:
            RunError: it is another run's, or beyond the end, or nobody can know it.
        """
        self._check(step)
        known = self._known_before(step) or self._computed(self._start)
        if self._constant and known.progress.step < step:
            ahead = step - known.progress.step
            tokens = known.progress.tokens + ahead * known.rows * known.length
            return self._step(step, tokens, known.rows, known.length)
        found = next(each for each in self._from(known) if each.progress.step == step or each.progress.done)
        if found.progress.step < step:
            raise RunError(f"step {step:,} is beyond the last, which is {found.progress.step - 1:,}")
        return found

    def steps(self) -> Steps:
        """Return the batches of all steps that can be known: those that were taken, and those to come."""
        end = max(self.done, self.last)
        if self._constant:
            first = self._known_before(self.begun) or self._computed(self._start)
            step_S = np.arange(self.begun, end)
            tokens_S = first.progress.tokens + (step_S - first.progress.step) * (first.rows * first.length)
            return Steps(step_S, tokens_S, np.full_like(step_S, first.rows), np.full_like(step_S, first.length))
        found: list[tuple[int, int, int, int]] = []
        try:
            for each in self._from(self._known_before(self.begun) or self._computed(self._start)):
                if each.progress.step >= end or each.progress.done:
                    break
                found.append((each.progress.step, each.progress.tokens, each.rows, each.length))
        except RunError:
            # What comes is not known; what was read is.
            pass
        return Steps(*np.array(found, np.int64).reshape(-1, 4).T)

    def recipe_at(self, step: int) -> Recipe:
        """Return the recipe with the knobs that were turned by then; a step to come has those of now."""
        turns = [turn for turn in self._turns if turn.step <= step]
        if len(turns) not in self._recipes:
            changes = self._overrides | {turn.path: turn.value for turn in turns}
            self._recipes[len(turns)] = self.recipe.with_(**changes) if changes else self.recipe
        return self._recipes[len(turns)]

    @property
    def _constant(self) -> bool:
        """True where every step has the same batch."""
        data = self.recipe.data
        turned = any(path.startswith("data.") for path in (*self._overrides, *(turn.path for turn in self._turns)))
        scheduled = any(isinstance(each, Schedule) for each in (data.batch_size, data.sequence_length))
        return data.batch_rule.follows_schedule and not scheduled and not turned

    @property
    def tokens(self) -> int:
        """Return the tokens that the run has recorded so far."""
        tokens_S, rows_S, length_S = self._recorded[1:]
        return int(tokens_S[-1] + rows_S[-1] * length_S[-1]) if len(tokens_S) else 0

    @property
    def last(self) -> int:
        """Return the number of steps when the budget is spent, as far as it can be known; else 0."""
        budget = self.recipe.budget
        if budget.unit == "steps":
            return math.ceil(budget.amount)
        if budget.unit == "tokens" and self._constant:
            first = self._known_before(self.begun) or self._computed(self._start)
            left = budget.amount - first.progress.tokens
            return first.progress.step + max(0, math.ceil(left / (first.rows * first.length)))
        return MOST_STEPS if budget.unit == "tokens" else 0

    def _check(self, step: int) -> None:
        if step < 0:
            raise RunError(f"step {step} is before the first, which is 0")
        if step < self.begun:
            origin = origin_of(self._folder) if self._folder else None
            raise RunError(
                f"step {step:,} is not this run's: it goes on from run '{origin.run if origin else ''}' at step "
                f"{self.begun:,}; ask for the rows of that run"
            )
        end = max(self.done, self.last)
        if self.recipe.budget.unit != "seconds" and step >= end:
            raise RunError(f"step {step:,} is beyond the last, which is {end - 1:,}")

    def _known_before(self, step: int) -> Step | None:
        """Return the batch of the latest step up to this one that the run has recorded."""
        place = int(np.searchsorted(self._recorded.step_S, step, side="right")) - 1
        return None if place < 0 else self._step(*(int(column[place]) for column in self._recorded))

    def _step(self, step: int, tokens: int, rows: int, length: int) -> Step:
        recipe = self.recipe_at(step)
        return Step(Progress(step, tokens, self._seconds(step), recipe.budget), rows, length, recipe)

    def _seconds(self, step: int) -> float:
        """Return the seconds of training before a step, NaN where the run has not recorded them."""
        if step == self.begun:
            return self._start.seconds
        step_N, seconds_N = self._clock
        place = int(np.searchsorted(step_N, step))
        return float(seconds_N[place]) if place < len(step_N) and step_N[place] == step else math.nan

    def _from(self, known: Step) -> Iterator[Step]:
        """Yield the batches of one step after the other, from a known one on."""
        while True:
            yield known
            before = known.progress
            after = before.step + 1
            tokens = before.tokens + known.rows * known.length
            recorded = self._known_before(after)
            if recorded is not None and recorded.progress.step == after:
                known = recorded
            else:
                known = self._computed(Progress(after, tokens, self._seconds(after), before.budget))

    def _computed(self, progress: Progress) -> Step:
        recipe = self.recipe_at(progress.step)
        if not recipe.data.batch_rule.follows_schedule and progress.step > 0:
            raise RunError(
                f"the batch of step {progress.step:,} is not known: data.batch_rule '{recipe.data.batch_rule.kind}' "
                "follows the gradients, and the run has not recorded that step"
            )
        if math.isnan(progress.seconds) and _reads_seconds(recipe):
            raise RunError(
                f"the batch of step {progress.step:,} is not known: it is scheduled by seconds of training, and the "
                "run has not recorded that step"
            )
        rows, length, _ = BatchSize(recipe, self._limit).shape(progress)
        return Step(progress, rows, length, recipe)


def recorded(columns: Columns) -> Steps:
    """Return the batches that a run has recorded, (S,) each."""
    if not {ROWS, LENGTH} <= set(columns.names):
        return Steps(*np.empty((4, 0), np.int64))
    rows_N, length_N = columns.values(ROWS), columns.values(LENGTH)
    # Evaluations record other scalars.
    here_N = ~np.isnan(rows_N) & ~np.isnan(length_N)
    rows_S, length_S = (values[here_N].astype(np.int64) for values in (rows_N, length_N))
    # A record is of the moment after its step.
    tokens_S = columns.clock("tokens")[here_N].astype(np.int64) - rows_S * length_S
    return Steps(columns.clock("step")[here_N] - 1, tokens_S, rows_S, length_S)


def _reads_seconds(recipe: Recipe) -> bool:
    """Return whether a batch is scheduled by seconds of training."""
    units = [each.over for each in (recipe.data.batch_size, recipe.data.sequence_length) if isinstance(each, Schedule)]
    return "seconds" in units or ("budget" in units and recipe.budget.unit == "seconds")
