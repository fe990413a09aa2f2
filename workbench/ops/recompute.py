"""Activations that the backward pass computes again instead of finding them, and a count of those that are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


def recomputed(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return ``function(*args, **kwargs)``, of which the backward pass finds nothing but the arguments
    and computes the rest.

    With the same random numbers and under the same autocast, and no further than the last tensor that is missing: a
    product at the end is not repeated. Gradients are those of the function, to rounding.
    """
    if not torch.is_grad_enabled():
        return function(*args, **kwargs)
    return checkpoint(function, *args, use_reentrant=False, **kwargs)


def dropout(x: Tensor, probability: float) -> Tensor:
    """Return dropout of x, any shape, that keeps the state of the generator for the backward pass and not the mask.

    Eager torch keeps the mask, in the precision of x. The numbers are those of ``F.dropout`` on a CPU; compiled code
    does as much by itself.
    """
    # Not x itself: it would be kept with the function below.
    shape, dtype, device = x.shape, x.dtype, x.device
    state = _generator_state(device)

    def mask() -> Tensor:
        return F.dropout(torch.ones(shape, dtype=dtype, device=device), probability)

    def again(_: Any) -> Tensor:
        now = _generator_state(device)
        _set_generator_state(device, state)
        try:
            return mask()
        finally:
            _set_generator_state(device, now)

    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: None, again):
        return x * mask()


class KeptBytes:
    """Bytes that autograd keeps for the backward pass, every storage once, those of parameters left out.

    Attributes:
        total: of everything.
        inside: of what was kept while each of the modules given to :meth:`counting` ran, in their order.
    """

    def __init__(self) -> None:
        self.inside: list[int] = []
        self._sizes: dict[int, int] = {}
        # Kept alive: an address is used again once its storage is gone.
        self._alive: list[Tensor] = []
        self._own: set[int] = set()

    @property
    def total(self) -> int:
        """Bytes so far."""
        return sum(self._sizes.values())

    @contextmanager
    def counting(self, model: nn.Module, modules: list[nn.Module]) -> Iterator[KeptBytes]:
        """Inside, what autograd keeps is counted.

        Args:
            model: its parameters and buffers, of any shapes, count nothing.
            modules: parts of it whose share is wanted.
        """
        self._own = {t.untyped_storage().data_ptr() for t in (*model.parameters(), *model.buffers())}
        self.inside = [0] * len(modules)
        before: dict[int, int] = {}
        handles = []
        for index, module in enumerate(modules):

            def enter(*_: Any, index: int = index) -> None:
                before[index] = self.total

            def leave(*_: Any, index: int = index) -> None:
                self.inside[index] += self.total - before[index]

            handles += [module.register_forward_pre_hook(enter), module.register_forward_hook(leave)]
        try:
            with torch.autograd.graph.saved_tensors_hooks(self._keep, lambda tensor: tensor):
                yield self
        finally:
            for handle in handles:
                handle.remove()
            self._alive.clear()

    def _keep(self, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        address = storage.data_ptr()
        if address not in self._own and address not in self._sizes:
            self._sizes[address] = storage.nbytes()
            self._alive.append(tensor.detach())
        return tensor


def _generator_state(device: torch.device) -> Tensor:
    """Return the state of the default generator; on a GPU, too, a tensor of the host, so nothing waits."""
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


def _set_generator_state(device: torch.device, state: Tensor) -> None:
    if device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
    else:
        torch.set_rng_state(state)
