"""AdaSum: every worker steps for itself; steps that agree are averaged, steps that are orthogonal are added."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from torch import Tensor

from workbench.choices.choice import Problem, knob
from workbench.choices.optimizers.combine.combine import Combine
from workbench.ops.adasum import adasum, check_tree


class AdaSum(Combine):
    """Workers with optimizer states of their own; their steps are averaged where they agree, added where orthogonal.

    (1 - a.b / (2 |a|^2)) a + (1 - a.b / (2 |b|^2)) b for each tensor, neighbours first, then pairs of neighbours.

    Source: Maleki et al. 2021 (MLSys, arXiv 2006.02924), sections 3 and 4.
    """

    kind: Literal["adasum"] = "adasum"
    workers: int = knob(
        4, "workers that take a step each on their share of the batch: a power of two", ge=2, le=1024, scale="log"
    )

    @property
    def count(self) -> int:
        """Return the workers."""
        return self.workers

    def pair(self, left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
        """See :func:`workbench.ops.adasum.adasum`; tensors of any shapes."""
        return adasum(left, right)

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Yield a number of workers that no tree takes, and what needs the gradient of the whole batch."""
        try:
            check_tree(self.workers)
        except ValueError as error:
            yield Problem("optimizer.combine.workers", str(error))
        data, size = recipe.data, recipe.execution.micro_batch_size
        rows = min(data.fewest_rows, size if isinstance(size, int) else data.fewest_rows)
        if rows < self.workers:
            why = f"{rows} rows at a time cannot be shared by {self.workers} workers; use more rows, or fewer workers"
            yield Problem("optimizer.combine.workers", why)
        for path, what, unfit in (
            ("data.batch_rule", "compares gradients of the whole batch", not data.batch_rule.follows_schedule),
            ("architecture.notes", "are written by all rows in turn", recipe.architecture.keeps_notes()),
            ("optimizer.kind", "takes gradients of its own", recipe.optimizer.takes_gradients),
        ):
            if unfit:
                yield Problem(path, f"{what}, and AdaSum's workers have a part each; use optimizer.combine 'mean'")

    def problems_together(self, recipe: Any, processes: int) -> Iterator[Problem]:
        """Yield processes that cannot have equally many workers."""
        if self.workers % processes:
            why = f"{processes} processes cannot carry {self.workers} workers equally; use a power of two up to that"
            yield Problem("optimizer.combine.workers", why)
