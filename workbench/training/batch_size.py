"""The batch of a step: its rows, its tokens per row, and its cut into micro-batches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from workbench.choices.progress import LOOK_AHEAD, Progress
from workbench.recipes.recipe import Recipe
from workbench.training.batches import StepShape


def step_shape(rows: float, length: int, longest: int, limit: int | None) -> StepShape:
    """Return the batch of ``rows`` rows that micro-batches allow, and its cut.

    A batch of at least ``limit`` rows is rounded to a multiple of it, so that all micro-batches are equal and their
    mean is the mean over the batch; a smaller one is one micro-batch. Shorter rows go together in larger micro-batches:
    as many whole ones as have no more tokens than one at the longest length.

    Args:
        length: T, tokens per row.
        longest: of the run, in tokens.
        limit: rows of the longest length per micro-batch; None for any number.
    """
    if limit is None or rows < limit:
        whole = max(1, round(rows))
        return StepShape(whole, length, whole)
    count = round(rows / limit)
    # A divisor of the count, so that no micro-batch is smaller than the others.
    together = max(n for n in range(1, max(1, longest // length) + 1) if count % n == 0)
    return StepShape(count * limit, length, together * limit)


class BatchSize:
    """Give the batch of each coming step, by the schedules and by the recipe's batch rule.

    Args:
        state: what :meth:`state` was at the step to go on from; None for the beginning.
    """

    def __init__(self, recipe: Recipe, limit: int | None, state: Mapping[str, float | None] | None = None) -> None:
        self.recipe, self._limit = recipe, limit
        saved = state or {}
        self._rows, self._cosine = saved.get("rows"), saved.get("cosine")
        self._first_half: list[Tensor | None] = []

    def shape(self, progress: Progress) -> StepShape:
        """Return the batch of the step that begins at ``progress``: rows, tokens per row, rows per micro-batch."""
        whole = self._whole(progress)
        return halved(whole) if self.recipe.data.batch_rule.compares(progress.step) else whole

    def shapes(self, progress: Progress) -> list[StepShape]:
        """Return all that a step at ``progress`` may have: with
        and without the cut into halves that a rule compares.
        """
        rule = self.recipe.data.batch_rule
        whole = self._whole(progress)
        # Not for this very step: looking ahead under a budget of seconds, every step is the first.
        return [whole, halved(whole)] if any(map(rule.compares, range(LOOK_AHEAD))) else [whole]

    def knobs(self, shape: StepShape) -> dict[str, float]:
        """For telemetry: rows and length as they are rather than as scheduled, and the last cosine, if there is one."""
        values: dict[str, float] = {"data.batch_size": shape.rows, "data.sequence_length": shape.length}
        return values if self._cosine is None else values | {"data.batch_rule.cosine": self._cosine}

    def after_part(self, progress: Progress, index: int, parts: int, parameters: Sequence[Tensor]) -> None:
        """Look at the gradients that the micro-batches so far have added up to, if the rule compares at this step.

        Args:
            index: of the micro-batch that was just backpropagated, from 0.
            parts: micro-batches of this step.
            parameters: with their gradients, of any scale.
        """
        rule = self.recipe.data.batch_rule
        half = parts // 2
        if not half or not rule.compares(progress.step):
            return
        if index == half - 1:
            self._first_half = [None if p.grad is None else p.grad.detach().clone() for p in parameters]
        elif index == 2 * half - 1:
            both = [None if p.grad is None else p.grad.detach() for p in parameters]
            cosine = cosine_of_halves(self._first_half, both)
            self._first_half = []
            # Overflow under fp16, or halves without any gradient: no reason to change anything.
            if math.isfinite(cosine):
                self._rows, self._cosine = rule.adapt(self._wanted(progress), cosine), cosine

    def state(self) -> dict[str, float | None]:
        """JSON-able: for a checkpoint."""
        return {"rows": self._rows, "cosine": self._cosine}

    def _wanted(self, progress: Progress) -> float:
        rows: float = self.recipe.data.batch_rule.rows(self.recipe.data.rows_at(progress), self._rows)
        return rows

    def _whole(self, progress: Progress) -> StepShape:
        data = self.recipe.data
        return step_shape(self._wanted(progress), data.length_at(progress), data.longest, self._limit)


def halved(shape: StepShape) -> StepShape:
    """Return the same batch in two micro-batches where it was one; an odd batch gets one row more."""
    if shape.part_rows < shape.rows:
        return shape
    half = (shape.rows + 1) // 2
    return shape._replace(rows=2 * half, part_rows=half)


def cosine_of_halves(first: Sequence[Tensor | None], both: Sequence[Tensor | None]) -> float:
    """Return cosine of the gradients of two halves of a batch, over all parameters together.

    Args:
        first: gradients of the first half, of any shapes; None where there is none (a layer that did not run).
        both: sums of the gradients of both halves, likewise.

    Returns:
        NaN when a half has no gradient at all or one that is not finite; waits for the device.

    Example:
        >>> cosine_of_halves([torch.tensor([3.0, 4.0])], [torch.tensor([6.0, 8.0])])
        1.0
    """
    sums: list[Tensor] = []
    for one, total in zip(first, both, strict=True):
        if total is None:
            continue
        a = torch.zeros_like(total) if one is None else one
        b = total - a
        sums.append(torch.stack([(x.float() * y.float()).sum() for x, y in ((a, b), (a, a), (b, b))]))
    # Within tensors in float32, over them in float64 on the host: one wait for the device.
    product, square, other = torch.stack(sums).to("cpu", torch.float64).sum(0).tolist() if sums else (0.0, 0.0, 0.0)
    return product / math.sqrt(square * other) if square > 0 and other > 0 else math.nan
