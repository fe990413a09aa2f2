"""Weights, gradients and states cut into rows, one part a process: torch's FSDP2 around a twin of the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor
from torch.distributed.fsdp import fully_shard

from workbench.choices.execution.parallel.twin import Cut, TwinExchange


class FullSharding(TwinExchange):
    """Has FSDP2 gather the twin's weights block by block, and free them again."""

    layers_measured_by = "nobody"

    def cut(self, twin: Any, mesh: Any) -> Mapping[str, int]:
        """See :meth:`TwinExchange.cut`; into rows."""
        for stack in twin.stacks().values():
            for block in stack.blocks:
                fully_shard(block, mesh=mesh)
        fully_shard(twin, mesh=mesh)
        return {}

    def gradient(self, cut: Cut) -> Tensor:
        """See :meth:`TwinExchange.gradient`; of rows."""
        # Gathered forward and backward, and added up to its owner: each passes the other processes' rows on.
        self.traffic.sent_bytes += 3 * (self.ranks.size - 1) * cut.weight.nbytes
        # FSDP2 takes the mean.
        return cut.twin.grad.to_local().mul_(self.ranks.size)  # type: ignore[no-any-return]
