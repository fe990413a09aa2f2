"""Weights in bf16 for the passes through a model, beside its own float32 ones, which nobody else sees replaced."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

FEW = 32
"""Micro-batches whose gradients may be added up in bf16. Of many the sum would stand still: it has 8 binary digits."""


class LowWeights:
    """bf16 copies of a model's matrices, in their place from a forward pass to the end of its backward pass.

    Parameters stay the float32 masters for whoever else looks: optimizer, checkpoints, scores, growth, telemetry. Their
    gradients are bf16 until :meth:`widen`. Products compute what they compute under autocast, which rounds the same
    weights anew in every pass; vectors (norms, biases) stay float32, and so does what a table looks up, so that the
    residual stream is the same, too.
    """

    def __init__(self) -> None:
        self._copies: dict[nn.Parameter, Tensor] = {}
        self._masters: list[tuple[nn.Parameter, Tensor]] = []
        self._fresh: set[nn.Parameter] = set()

    def lower(self, model: nn.Module) -> None:
        """Put copies in place of the matrices, two dimensions or more, rounded anew after :meth:`outdate`."""
        self.restore()
        for parameter in model.parameters():
            if parameter.ndim < 2 or not parameter.is_floating_point():
                continue
            copy = self._copies.get(parameter)
            if copy is None:
                copy = self._copies[parameter] = torch.empty_like(parameter, dtype=torch.bfloat16, requires_grad=False)
            if parameter not in self._fresh:
                copy.copy_(parameter.detach())
                self._fresh.add(parameter)
            self._masters.append((parameter, parameter.data))
            # The same Parameter, so that whatever freezes, names or groups it goes on to do so.
            parameter.data = copy

    def restore(self) -> None:
        """Give the parameters their float32 values back; does nothing where they have them."""
        for parameter, master in self._masters:
            parameter.data = master
        self._masters.clear()

    def widen(self) -> None:
        """Make the gradients float32, one by one, when activations are gone."""
        for parameter in self._copies:
            if parameter.grad is not None and parameter.grad.dtype != parameter.dtype:
                parameter.grad = parameter.grad.to(parameter.dtype)

    def outdate(self) -> None:
        """Let copies be rounded anew: a step is about to change the weights."""
        self._fresh.clear()


def look_up_in_float32(model: nn.Module) -> None:
    """Let tables hand out float32 rows, (..., D), whatever they are stored in."""

    def widened(module: nn.Module, args: Any, out: Tensor) -> Tensor:
        return out.float()

    for module in model.modules():
        if isinstance(module, nn.Embedding):
            module.register_forward_hook(widened)
