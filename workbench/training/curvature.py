"""The second backward pass of optimizers that estimate curvature: gradients of labels the model draws for itself.

For a softmax with cross-entropy the Gauss-Newton matrix equals the Fisher matrix, whose diagonal is the mean of squared
gradients *at labels drawn from the model's prediction* (not at the true ones). With q the gradient of the mean loss
over B such labels, B q^2 is an unbiased estimate of it (Liu et al. 2023, arXiv 2305.14342, algorithm 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

import torch
from torch import Tensor

from workbench.choices.data.tokens import Batch
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.corruption import random_bits
from workbench.choices.progress import Progress
from workbench.training.assemble import Assembled

# Shape legend: B rows, T positions of a row.

LABELS = 4
"""Purpose of these draws: a stream of its own beside the three that decide about masks (``corruption.SELECT``, ...)."""


class EstimatesCurvature(Protocol):
    """What an optimizer offers whose choice says ``curvature_due``."""

    def curvature(self, labels: int) -> None:
        """Take in the gradients (any shapes) of the mean loss over that many sampled labels."""


def take_curvature(
    assembled: Assembled, parts: Sequence[Batch], plans: Sequence[LayerPlan], progress: Progress, seed: int
) -> None:
    """Run the step's micro-batches forward and backward on sampled labels and hand the gradients to the optimizer.

    Layers that are dropped or frozen in this step get no gradient, and their curvature stays what it was. Labels are a
    function of the seed and the sample, so a resumed run, or another cut into micro-batches, draws the same. The pass
    costs the step about as much as its ordinary one; it is charged to the budget and shown as optimizer time, and the
    useful FLOPs do not count it.

    Args:
        assembled: model and optimizer; the latter is left without gradients.
        parts: rows of tokens, (B, T), by micro-batch.
        plans: one per micro-batch.
    """
    engine = assembled.engine
    counts: list[int] = []
    for part, plan in zip(parts, plans, strict=True):
        batch = part.to(engine.device)
        with engine.autocast():
            loss = assembled.model.sampled(batch, plan, progress, _uniform(batch, seed))
        counts.append(loss.count)
        # As in the ordinary pass: every part is taken to have as many labels as the first, corrected at the end.
        engine.backward(loss.loss, loss.count / (counts[0] * len(parts)))
    gradients = [p.grad for group in assembled.optimizer.param_groups for p in group["params"] if p.grad is not None]
    # Divided by rather than finished: an engine may allow one unscaling per step.
    scale = engine.loss_scale
    factor = counts[0] * len(parts) / sum(counts) / (scale or 1.0)
    if factor != 1:
        torch._foreach_mul_(gradients, factor)
    # Only float16 overflows; elsewhere nothing is read, and a loss that is not finite ends the run anyway.
    if scale is None or all(bool(torch.isfinite(norm)) for norm in torch._foreach_norm(gradients)):
        cast(EstimatesCurvature, assembled.optimizer).curvature(sum(counts))
    assembled.optimizer.zero_grad(set_to_none=True)


def _uniform(batch: Batch, seed: int) -> Tensor:
    """Float64 in [0, 1) for every position, (B, T): the upper 53 of its random bits."""
    rows_bits_BT = random_bits(seed, LABELS, batch.samples_B, batch.tokens_BT.shape[1])
    return (rows_bits_BT >> 10).double() * 2.0**-53
