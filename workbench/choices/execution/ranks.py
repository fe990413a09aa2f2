"""Processes that take the same steps together: each on its share of the rows, with gradients that are summed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

Value = TypeVar("Value")


@dataclass(frozen=True)
class Ranks:
    """One of several processes, 0 of 1 by default; alone, every method gives back what it was given.

    ``torch.distributed`` must have been started with as many processes.

    Attributes:
        rank: of this process.
        size: processes.
    """

    rank: int = 0
    size: int = 1

    def agree(self, value: Value) -> Value:
        """Return the value of rank 0: clocks and requests differ between processes."""
        if self.size == 1:
            return value
        held = [value]
        dist.broadcast_object_list(held, src=0)
        return held[0]

    def counted(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Return the sums over all processes, by name."""
        if self.size == 1 or not counts:
            return dict(counts)
        # On the CPU, where counts are known; gloo sums there.
        total = torch.tensor(list(counts.values()))
        dist.all_reduce(total)
        return dict(zip(counts, total.tolist(), strict=True))

    def reduce(self, tensors: Sequence[Tensor]) -> None:
        """Replace tensors of any shape by their sums over all processes; each names the same ones in one order."""
        if self.size > 1:
            for tensor in tensors:
                dist.all_reduce(tensor)
