"""Results of one step's backward passes, beside the gradients themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution.parallel.parallel import Exchange
from workbench.choices.objectives.objective import Loss, TrainingModel
from workbench.choices.progress import Progress

MOST_PROCESSES = 64
"""Processes that are told of, the first so many: each is a number in every record."""


def waiting(waited: Sequence[Tensor]) -> dict[str, float]:
    """Return telemetry: by process, the milliseconds that it waited for others in the step before.

    Whoever comes last to an exchange waits for nobody: what it spends there is the sending itself, which is taken off.

    Args:
        waited: of :class:`Gradients`.

    Example:
        >>> waiting([torch.tensor([5.0, 1.0, 4.0])])
        {'waiting_ms/0': 4.0, 'waiting_ms/1': 0.0, 'waiting_ms/2': 3.0}
    """
    if not waited:
        return {}
    milliseconds = waited[0].tolist()
    least = min(milliseconds)
    return {f"waiting_ms/{rank}": each - least for rank, each in enumerate(milliseconds[:MOST_PROCESSES])}


@dataclass
class Gradients:
    """Collect what the micro-batches of one step give.

    Attributes:
        counts: labels of the whole step, by part of the loss.
        losses: shares of the step's loss, 0-d, by micro-batch.
        sums: detached parts and metrics, 0-d sums over labels, by micro-batch.
        plans: by micro-batch.
        norms: of the gradients of workers that have put their steps by, 0-d; None where none was computed.
        waited: milliseconds that each process spent in exchanges of the step before, one tensor (processes,); none
            where one trains alone.
    """

    counts: dict[str, int]
    losses: list[Tensor]
    sums: list[Loss]
    plans: list[LayerPlan]
    norms: list[Tensor | None] = field(default_factory=list)
    waited: list[Tensor] = field(default_factory=list)

    @property
    def labels(self) -> int:
        """Labels of the first part of the loss, which metrics are sums over."""
        return next(iter(self.counts.values()))

    def loss(self) -> Tensor:
        """Return the loss of the step in nats, 0-d."""
        return torch.stack(self.losses).sum()

    def norm(self, last: Tensor | None) -> Tensor | None:
        """Return the mean norm over the workers of this process, 0-d, with that of the last; None where none is known.

        Args:
            last: 0-d, or None.
        """
        norms = [each for each in (*self.norms, last) if each is not None]
        return torch.stack(norms).mean() if len(norms) > 1 else last

    def metrics(self) -> dict[str, Tensor]:
        """Return metrics per label and ratios, 0-d; of a loss with several parts also each part by its name.

        A share of nothing is 0. A metric whose name begins with that of a part, as ``sentence_accuracy``, is per label
        of that part.
        """
        names = list(self.sums[0].metrics)
        means = {
            name: torch.stack([each.metrics[name] for each in self.sums]).sum() / self._labels_of(name)
            for name in names
        }
        for name in self.sums[0].ratios:
            wanted, of = (torch.stack([each.ratios[name][i] for each in self.sums]).sum() for i in (0, 1))
            means[name] = wanted / of.clamp(min=1)
        if len(self.counts) > 1:
            for part, count in self.counts.items():
                # The whole has the name "loss" in telemetry.
                name = "token_loss" if part == "loss" else part
                means[name] = torch.stack([each.parts[part] for each in self.sums]).sum() / max(1, count)
        return means

    def _labels_of(self, metric: str) -> int:
        named = (max(1, count) for part, count in self.counts.items() if metric.startswith(f"{part}_"))
        return next(named, self.labels)


def step_counts(model: TrainingModel, parts: Sequence[Any], progress: Progress) -> dict[str, int]:
    """Return the labels of a step by part of the loss.

    Args:
        model: that is about to train.
        parts: micro-batches, rows (B, T), on the CPU.
        progress: before the step.
    """
    counts: dict[str, int] = {}
    for part in parts:
        for name, count in model.counts(part, progress).items():
            counts[name] = counts.get(name, 0) + count
    return counts


@contextmanager
def unchanged_buffers(model: torch.nn.Module) -> Iterator[None]:
    """Inside, passes are not trained on: running means and notes, which move with every pass, are put back."""
    kept = [(buffer, buffer.clone()) for buffer in model.buffers()]
    yield
    for buffer, value in kept:
        # Only what moved: a table that is written to, if by itself, cannot be gone back through (rotary positions).
        if not torch.equal(buffer, value):
            buffer.copy_(value)


def zero_fill(model: TrainingModel, plans: Sequence[LayerPlan]) -> None:
    """Give zero gradients to the layers that exist and train, but ran in none of a step's micro-batches."""
    for block in model.stacks()["main"].blocks[: max(plan.layers for plan in plans)]:
        for weight in block.parameters():
            if weight.requires_grad and weight.grad is None:
                weight.grad = torch.zeros_like(weight)


def clip(parameters: Sequence[Tensor], limit: float | None, exchange: Exchange, *, measured: bool) -> Tensor | None:
    """Clip finished gradients; returns their norm before, 0-d, or None where nobody needs it.

    Args:
        limit: of the norm; None for none.
        measured: somebody looks at the norm.
    """
    if limit is None and not measured and not exchange.shares_norm:
        return None
    graded = [p for p in parameters if p.grad is not None]
    norm = exchange.norm(graded)
    if limit is not None:
        # The epsilon keeps an all-zero gradient from dividing by zero.
        factor = (limit / (norm + 1e-6)).clamp(max=1.0)
        # Where reading a number costs nothing, gradients that are short enough are left in peace.
        if norm.device.type != "cpu" or factor.item() != 1.0:
            torch._foreach_mul_([p.grad for p in graded], factor)  # type: ignore[misc]
    return norm
