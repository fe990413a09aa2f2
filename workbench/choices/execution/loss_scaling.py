"""Loss scaling of fp16 whose steps never wait for the device."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class DeviceScaler(torch.amp.GradScaler):
    """torch's scaler, but a step that overflowed is undone on the device instead of being skipped by the host.

    torch reads one number before every step, and so the host waits until the whole backward pass has run. Its fused
    optimizers take the number on the device, and so does this class for them. For every other optimizer it keeps
    copies of weights and state while the step runs, and selects between both on the device. Step counts that an
    optimizer keeps on the host are put right one step later, when the number has long arrived (:meth:`settle`).

    Source: Micikevicius et al. 2018 (arXiv 1710.03740), section 3.2.
    """

    _late: tuple[Tensor, torch.cuda.Event, list[tuple[Tensor, Tensor]]] | None = None

    def settle(self) -> None:
        """Put the step counts on the host right, if the last step was undone; waits for that step."""
        if self._late is None:
            return
        overflowed, arrived, counts = self._late
        self._late = None
        arrived.synchronize()
        if overflowed.item():
            for count, before in counts:
                count.copy_(before)

    @torch.no_grad()
    def _maybe_opt_step(
        self, optimizer: torch.optim.Optimizer, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        self.settle()
        (found,) = optimizer_state["found_inf_per_device"].values()
        overflowed = found.squeeze() > 0
        _complete_state(optimizer)
        before = [(tensor, tensor.clone()) for tensor in _tensors(optimizer)]
        for gradient in _gradients(optimizer):
            # An eigendecomposition raises at NaN, and what is undone need not be a step.
            gradient.masked_fill_(overflowed, 0.0)
        result = optimizer.step(*args, **kwargs)
        counts = [pair for pair in before if pair[0].device != overflowed.device]
        for tensor, kept in before:
            if tensor.device == overflowed.device:
                tensor.copy_(torch.where(overflowed, kept, tensor))
        if counts:
            arrived = torch.cuda.Event()
            here = torch.empty(overflowed.shape, dtype=torch.bool, pin_memory=True)
            here.copy_(overflowed, non_blocking=True)
            arrived.record()
            self._late = here, arrived, counts
        return result


def _gradients(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]


def _complete_state(optimizer: torch.optim.Optimizer) -> None:
    """State for every parameter that has a gradient, so that there is something to go back to."""
    state_of = getattr(optimizer, "state_of", None)
    if state_of is not None:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    state_of(parameter, group)


def _tensors(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """Return weights with a gradient and their state, every tensor once."""
    found: list[Tensor] = []
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None:
                found.append(parameter.data)
                found += [value for value in optimizer.state[parameter].values() if isinstance(value, Tensor)]
    return found
