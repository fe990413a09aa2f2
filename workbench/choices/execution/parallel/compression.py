"""Gradients that are made smaller before they are sent, by torch's own communication hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook

from workbench.choices.execution.parallel.buckets import Send, ring
from workbench.choices.execution.ranks import Ranks

_PLAIN_STEPS = 10
"""Steps that PowerSGD leaves as they are: gradients of the first are like no later ones."""


class Bucket:
    """A bucket as torch's hooks ask for it: ``dist.GradBucket``, which only DDP can make."""

    def __init__(self, number: int, weights: list[Tensor], flat: Tensor, last: bool) -> None:
        self._number, self._weights, self._flat, self._last = number, weights, flat, last

    def index(self) -> int:
        """Return its number."""
        return self._number

    def buffer(self) -> Tensor:
        """Return all gradients, (numbers,)."""
        return self._flat

    def gradients(self) -> list[Tensor]:
        """Return each weight's gradient, of its shape."""
        parts = self._flat.split([weight.numel() for weight in self._weights])
        return [part.view(weight.shape) for part, weight in zip(parts, self._weights, strict=True)]

    def parameters(self) -> list[Tensor]:
        """Return the weights, of any shapes."""
        return self._weights

    def is_last(self) -> bool:
        """Return True for the last bucket of a step."""
        return self._last


def rounded(ranks: Ranks, dtype: torch.dtype) -> Send:
    """Return what sends gradients in 16 bits, float16 or bfloat16."""
    hook = default_hooks.fp16_compress_hook if dtype == torch.float16 else default_hooks.bf16_compress_hook

    def send(number: int, weights: list[Tensor], flat: Tensor) -> tuple[Callable[[], Tensor], float]:
        # Its mean, which a sum in 16 bits cannot exceed the range of.
        mean = hook(None, Bucket(number, weights, flat, False))  # type: ignore[arg-type]
        return lambda: mean.wait().mul_(ranks.size), ring(ranks) * flat.numel() * dtype.itemsize

    return send


def low_rank(ranks: Ranks, rank: int, buckets: Callable[[], int]) -> Send:
    """Return what sends matrices (R, C) as products of (R, rank) and (rank, C), and waits for each bucket.

    Args:
        rank: of the products. buckets: says how many there are.
    """
    state: Any = PowerSGDState(None, matrix_approximation_rank=rank, start_powerSGD_iter=_PLAIN_STEPS)

    def send(number: int, weights: list[Tensor], flat: Tensor) -> tuple[Callable[[], Tensor], float]:
        plain = state.iter < state.start_powerSGD_iter
        _, before, after = state.compression_stats()
        # One by one: it sends twice, the second time from a thread, and all processes must send in one order.
        total = powerSGD_hook(state, Bucket(number, weights, flat, number == buckets() - 1)).wait()  # type: ignore[arg-type]
        _, counted_before, counted_after = state.compression_stats()
        left = counted_after - after if counted_before > before else flat.numel()
        total.mul_(ranks.size)
        return lambda: total, ring(ranks) * flat.itemsize * (flat.numel() if plain else left)

    return send
