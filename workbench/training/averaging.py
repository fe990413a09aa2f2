"""An average of the weights over the steps, which is scored and exported instead of the last ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from workbench.training.checkpoint import Checkpoint


def decay_at(decay: float, step: int) -> float:
    """Return the share of the average that stays in a step: lower at first, so that it forgets where it began.

    Args:
        step: steps done before.

    Example:
        >>> decay_at(0.99, 0), decay_at(0.99, 10_000)
        (0.1, 0.99)
    """
    return min(decay, (1 + step) / (10 + step))


@torch.no_grad()
def follow(average: dict[str, Tensor], model: nn.Module, decay: float, step: int) -> None:
    """Move the average towards the weights after a step: a <- d a + (1 - d) x, with d of :func:`decay_at`.

    Without an average so far it becomes a copy of the weights. Buffers, such as notes, are not averaged.

    Args:
        average: by parameter name, any shapes; changed in place, emptied where the decay is 0.
        step: steps done before this one.
    """
    if not decay:
        average.clear()
        return
    weights = {name: weight for name, weight in model.named_parameters() if weight.is_floating_point()}
    if average.keys() != weights.keys():
        average.clear()
        average |= {name: weight.detach().clone() for name, weight in weights.items()}
        return
    # Shared by all: one kernel instead of one per tensor.
    torch._foreach_lerp_([average[name] for name in weights], list(weights.values()), 1 - decay_at(decay, step))


@contextmanager
def averaged(average: Mapping[str, Tensor], model: nn.Module) -> Iterator[None]:
    """Inside, the model has the averaged weights, of any shapes; afterwards its own, bit for bit."""
    weights = dict(model.named_parameters())
    own = {name: weights[name].detach().clone() for name in average}
    with torch.no_grad():
        try:
            for name, value in average.items():
                weights[name].copy_(value)
            yield
        finally:
            for name, value in own.items():
                weights[name].copy_(value)


def average_of(saved: Checkpoint, device: torch.device) -> dict[str, Tensor]:
    """Return the average of a checkpoint by name, any shapes, on a device; empty where it has none."""
    return {name: tensor.to(device) for name, tensor in saved.tensors.get("average", {}).items()}


def scored_weights(saved: Checkpoint) -> dict[str, Tensor]:
    """Return the tensors of a checkpoint's model by name, weights averaged where the run averages them."""
    return saved.tensors["model"] | saved.tensors.get("average", {})
