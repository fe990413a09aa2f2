"""Weights, gradients and states cut into rows, one part a process: torch's FSDP2 around a twin of the model."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.optim import Optimizer

from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution.parallel.parallel import Exchange
from workbench.choices.execution.ranks import Ranks, together


class FullSharding(Exchange):
    """Sends a twin of the model through the passes, whose weights FSDP2 gathers block by block, and frees again.

    Between two steps, the run's own model holds the rows of this process: its parameters and the twin's share their
    memory. So optimizer, clipping and schedules work on rows, as if these were the weights, which is right for an
    optimizer that treats every number by itself. :meth:`settle` makes the model whole, and the next pass cuts it again.

    Args:
        ranks: that share.
    """

    shares_norm = True
    measures_layers = False

    def __init__(self, ranks: Ranks) -> None:
        self.ranks = ranks
        self._twin: Any = None
        self._pairs: list[tuple[Tensor, Any]] = []
        self._cut = False
        self._sent_bytes = self._waited = 0.0

    def watch(self, model: nn.Module, optimizer: Optimizer) -> None:
        """See :meth:`Exchange.watch`; the model is whole."""
        self.model, self.optimizer = model, optimizer

    def module(self, model: Any, plan: LayerPlan) -> Any:
        """See :meth:`Exchange.module`; the twin."""
        if not self._cut:
            self._shard(model)
        self._twin.choice, self._twin.reference = model.choice, model.reference
        self._twin.freeze_outside(plan)
        return self._twin

    def forget(self) -> None:
        """See :meth:`Exchange.forget`."""
        for _, row in self._pairs:
            row.grad = None

    def finish(self) -> None:
        """See :meth:`Exchange.finish`; the rows of this process."""
        for weight, rows in self._pairs:
            # Nothing, where there are fewer rows than processes.
            if rows.grad is not None and weight.numel():
                # FSDP2 takes the mean.
                weight.grad = rows.grad.to_local().mul_(self.ranks.size)
                # Gathered forward and backward, and added up to its owner: each passes the other processes' rows on.
                self._sent_bytes += 3 * (self.ranks.size - 1) * weight.nbytes
        self.forget()

    def norm(self, gradients: Sequence[Tensor]) -> Tensor:
        """See :meth:`Exchange.norm`; 0-d."""
        square, began = super().norm(gradients).square(), time.perf_counter()
        self.ranks.reduce([square])
        self._waited += time.perf_counter() - began
        return square.sqrt()

    def told(self) -> dict[str, float]:
        """See :meth:`Exchange.told`; how long a gather is waited for inside a pass, nobody counts."""
        told = {"sent_mib": self._sent_bytes / 2**20, "waited_ms": 1e3 * self._waited}
        self._sent_bytes = self._waited = 0.0
        return told

    @torch.no_grad()
    def settle(self, everywhere: bool) -> None:
        """See :meth:`Exchange.settle`; the model's weights are whole as well, of the shapes that they began with."""
        if not self._pairs:
            return
        keeps = everywhere or not self.ranks.rank
        # Of the first process, which has rows of every tensor, and so a state where any has.
        kinds = self.ranks.agree([[(k, v.dtype) for k, v in self._moments(weight)] for weight, _ in self._pairs])
        for (weight, rows), moments in zip(self._pairs, kinds, strict=True):
            # Whether this process is whole already (it was settled before) or not, all gather the same.
            full = self._gathered(rows.to_local(), rows)
            for key, dtype in moments:
                value = self.optimizer.state.get(weight, {}).get(key)
                none = rows.to_local().new_empty(0, *rows.shape[1:], dtype=dtype)
                moment = self._gathered(none if value is None else _rows_like(value, rows), rows)
                if keeps:
                    self.optimizer.state[weight][key] = moment
            if keeps:
                weight.data = full
        self._cut = self._cut and not keeps

    @torch.no_grad()
    def _shard(self, model: nn.Module) -> None:
        """Let the model hold its rows alone; local work, which the processes need not do together."""
        if self._twin is None:
            self._twin = copy.deepcopy(model)
            mesh = init_device_mesh(next(model.parameters()).device.type, (self.ranks.size,))
            for stack in self._twin.stacks().values():
                for block in stack.blocks:
                    fully_shard(block, mesh=mesh)
            fully_shard(self._twin, mesh=mesh)
            whole, shared = dict(model.named_parameters()), dict(self._twin.named_parameters())
            self._pairs = [(whole[name], rows) for name, rows in shared.items()]
        for weight, rows in self._pairs:
            local = rows.to_local()
            for key, value in self._moments(weight):
                self.optimizer.state[weight][key] = _rows_like(value, rows).clone()
            local.copy_(_rows_like(weight, rows))
            weight.grad = None
            weight.data = local
        self._cut = True

    def _moments(self, weight: Tensor) -> list[tuple[str, Tensor]]:
        state = self.optimizer.state.get(weight, {})
        return [(key, value) for key, value in state.items() if isinstance(value, Tensor) and value.ndim]

    def _gathered(self, local: Tensor, rows: Any) -> Tensor:
        """Return the whole tensor of which this process has some rows."""
        longest = -(-rows.shape[0] // self.ranks.size)
        padded = local.new_zeros(longest, *rows.shape[1:])
        padded[: local.shape[0]] = local
        parts = [torch.empty_like(padded) for _ in range(self.ranks.size)]
        with together():
            dist.all_gather(parts, padded)
        return torch.cat(parts)[: rows.shape[0]]


def _rows_like(whole: Tensor, rows: Any) -> Tensor:
    """Return the rows of this process of ``whole``, or ``whole`` where it holds no others."""
    if whole.shape == rows.to_local().shape:
        return whole
    longest = -(-rows.shape[0] // dist.get_world_size())
    return whole[dist.get_rank() * longest :][: rows.to_local().shape[0]]
