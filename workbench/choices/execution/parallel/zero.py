"""ZeRO: optimizer states, then gradients, shared out between the processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import torch.distributed as dist
from torch import Tensor, nn
from torch.optim import Optimizer

from workbench.choices.choice import Problem, knob
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution.parallel.buckets import Buckets, in_buckets, ring
from workbench.choices.execution.parallel.parallel import Exchange, Groups, Parallel, uncut
from workbench.choices.execution.parallel.sharding import ShardedOptimizer
from workbench.choices.execution.ranks import Ranks


class Zero(Parallel):
    """States of the optimizer (stage 1), gradients (2) and weights (3), shared out between the processes.

    Bytes a number, with k moments and n processes: whole 8 + 4 k, stage 1 8 + 4 k / n, stage 2 4 + 4 (1 + k) / n,
    stage 3 4 (2 + k) / n and a block.

    Source: Rajbhandari et al. 2020 (arXiv 1910.02054), sections 5 and 7. Stages 1 and 2 do not cut tensors; stage 3 is
    torch's FSDP2, which cuts them into rows.
    """

    kind: Literal["zero"] = "zero"
    stage: int = knob(1, "what is shared out: 1 optimizer states, 2 gradients as well, 3 weights as well", ge=1, le=3)
    bucket_mib: float = knob(
        25.0, "gradients that are sent at once; smaller ones leave earlier", unit="MiB", gt=0, le=4096, scale="log"
    )

    def exchange(self, ranks: Ranks) -> Exchange:
        """Return the buckets, whose sums all processes get (stage 1) or each its own (stage 2), or FSDP2."""
        if self.stage == 3:
            # Not before: loading FSDP2 takes a second.
            from workbench.choices.execution.parallel.full_sharding import FullSharding

            return FullSharding(ranks)
        return ShardedExchange(ranks, round(self.bucket_mib * 2**20), self.stage)

    def optimizer(self, build: Callable[[Groups], Optimizer], groups: Groups, ranks: Ranks) -> Optimizer:
        """Return an optimizer that keeps the states of this process's tensors; see :meth:`Parallel.optimizer`."""
        if self.stage == 3:
            return super().optimizer(build, groups, ranks)
        return ShardedOptimizer(build, groups, ranks)

    def problems_together(self, recipe: Any, processes: int) -> Iterator[Problem]:
        """Yield an optimizer whose step of one tensor needs the others, and what stage 3 cannot cut."""
        if why := recipe.optimizer.needs_all_tensors:
            yield Problem(
                "execution.parallel.kind", f"'zero' gives each process some of the tensors, and {why}; or use 'data'"
            )
        if self.stage == 3:
            yield from uncut(recipe, "execution.parallel.stage", "3", "stage 2")
        elif recipe.optimizer.average:
            yield Problem("optimizer.average", "an average is kept of whole weights in every process; use 0, or 'data'")


class ShardedExchange(Buckets):
    """Buckets of tensors that belong to one process each, which alone keeps their sum under stage 2.

    Args:
        ranks: that sum. bucket_bytes: as for :class:`Buckets`. stage: of ZeRO, 1 or 2.
    """

    def __init__(self, ranks: Ranks, bucket_bytes: int, stage: int) -> None:
        super().__init__(ranks, bucket_bytes, self._to_owner if stage == 2 else None)
        self._to_owners, self._whole = stage == 2, False

    @property
    def shares_norm(self) -> bool:  # type: ignore[override]
        """See :attr:`Exchange.shares_norm`; not in steps whose gradients are measured."""
        return self._to_owners and not self._whole

    def watch(self, model: nn.Module, optimizer: Optimizer) -> None:
        """See :meth:`Exchange.watch`; the optimizer says whose each tensor is."""
        assert isinstance(optimizer, ShardedOptimizer)
        self.optimizer, optimizer.traffic = optimizer, self.traffic
        super().watch(model, optimizer)

    def last(self, model: Any, plan: LayerPlan, whole: bool = False) -> None:
        """See :meth:`Exchange.last`."""
        self._whole = whole
        super().last(model, plan, whole)

    def settle(self, everywhere: bool) -> None:
        """See :meth:`Exchange.settle`."""
        self.optimizer.gather()
        if self.ranks.rank and not everywhere:
            self.optimizer.keep_own()

    def _cut(self, weights: list[Tensor]) -> list[list[Tensor]]:
        if not self._to_owners:
            return super()._cut(weights)
        place = {weight: number for number, weight in enumerate(weights)}
        owners = self.optimizer.owners
        by_owner = [[each for each in weights if owners[each] == owner] for owner in range(self.ranks.size)]
        found = [bucket for own in by_owner for bucket in in_buckets(own, self._bytes)]
        # By the gradient that comes last: they leave in this order.
        return sorted(found, key=lambda bucket: place[bucket[-1]])

    def _to_owner(self, number: int, weights: list[Tensor], flat: Tensor) -> tuple[Callable[[], Tensor | None], float]:
        if self._whole:
            return self._summed(number, weights, flat)
        owner = self.optimizer.owners[weights[0]]
        work = dist.reduce(flat, dst=owner, async_op=True)
        self.optimizer.moved.update(weights)
        own = owner == self.ranks.rank
        if not own:
            for weight in weights:
                weight.grad = None

        def wait() -> Tensor | None:
            work.wait()
            return flat if own else None

        return wait, ring(self.ranks) / 2 * flat.nbytes
