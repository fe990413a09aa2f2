"""Projections of the blocks cut by heads and inner units, one part a process: torch's DTensor in a twin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from workbench.choices.architectures.feed_forward import FeedForward
from workbench.choices.architectures.self_attention import SelfAttention
from workbench.choices.data.tokens import Batch
from workbench.choices.execution.parallel.buckets import ring
from workbench.choices.execution.parallel.twin import Cut, TwinExchange


class TensorSharding(TwinExchange):
    """Has each process compute its heads and its inner units of every block, whose outputs are added up.

    Inside a block tensors are local ones: DTensors go no further than the projections, so that every implementation of
    attention sees what it always does, of fewer heads. Everything outside the projections is the same in all processes.
    """

    layers_measured_by = "all"

    def cut(self, twin: Any, mesh: Any) -> Mapping[str, int]:
        """See :meth:`TwinExchange.cut`; a block of which the processes cannot have equal parts stays whole."""
        stacked: dict[str, int] = {}
        for name, module in list(twin.named_modules()):
            if isinstance(module, SelfAttention) and module.heads % self.ranks.size == 0:
                plan, wide, parts = {"qkv": ColwiseParallel(), "out": RowwiseParallel()}, "qkv", 3
                narrow, module.heads = module.out, module.heads // self.ranks.size
            elif isinstance(module, FeedForward) and module.down.in_features % self.ranks.size == 0:
                plan, wide, parts = {"up": ColwiseParallel(), "down": RowwiseParallel()}, "up", 1 + module.gated
                narrow = module.down
            else:
                continue
            parallelize_module(module, mesh, plan)
            stacked |= {f"{name}.{wide}.{kind}": parts for kind in ("weight", "bias")}
            narrow.register_forward_hook(self._count)
        return stacked

    def gradient(self, cut: Cut) -> Tensor:
        """See :meth:`TwinExchange.gradient`; whole ones are equal in all processes, since all see the same rows."""
        gradient: Any = cut.twin.grad
        if not isinstance(gradient, DTensor):
            return gradient  # type: ignore[no-any-return]
        return gradient.redistribute(placements=cut.twin.placements).to_local()

    def norms(self, weights: Sequence[Tensor], tensors: Sequence[Tensor]) -> list[Tensor]:
        """See :meth:`Exchange.norms`; of whole tensors."""
        norms = super().norms(weights, tensors)
        cut = {each.weight for each in self.cuts if each.dim is not None}
        places = [place for place, weight in enumerate(weights) if weight in cut]
        if places:
            squares = self.added(torch.stack([norms[place] for place in places]).square())
            for place, norm in zip(places, squares.sqrt().unbind(), strict=True):
                norms[place] = norm
        return norms

    def norm(self, weights: Sequence[Tensor]) -> Tensor:
        """See :meth:`Exchange.norm`; 0-d."""
        return torch.linalg.vector_norm(torch.stack(self.norms(weights, [weight.grad for weight in weights])))  # type: ignore[misc]

    def entropy(self, stack: Any, tokens_BT: Tensor, batch: Batch) -> Sequence[Tensor | None]:
        """See :meth:`Exchange.entropy`; the mean over the heads of all processes."""
        with self.passing():
            found = super().entropy(self.twin.stacks()["main"], tokens_BT, batch)
        means = self.added(torch.stack([one for one in found if one is not None])) / self.ranks.size
        rest = iter(means.unbind())
        return [None if one is None else next(rest) for one in found]

    def _count(self, _module: nn.Module, _inputs: Any, output: Tensor) -> None:
        """Count what is sent for the output of one half of a block, and as much for its input's gradient."""
        self.traffic.sent_bytes += ring(self.ranks) * output.nbytes * (1 + output.requires_grad)
