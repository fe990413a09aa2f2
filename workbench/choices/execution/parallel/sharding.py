"""An optimizer whose states are shared out: each process keeps those of its own tensors, and takes their steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from workbench.choices.execution.parallel.parallel import Groups, Traffic
from workbench.choices.execution.ranks import Ranks


def shares(sizes: Sequence[int], processes: int) -> list[int]:
    """Return whose each tensor is, the same in all processes: the largest first, whole, to who has least.

    Args:
        sizes: numbers of each tensor.
    """
    loads, owners = [0] * processes, [0] * len(sizes)
    for place in sorted(range(len(sizes)), key=lambda place: -sizes[place]):
        owner = owners[place] = loads.index(min(loads))
        loads[owner] += sizes[place]
    return owners


def largest_share(sizes: Sequence[int], processes: int) -> int:
    """Return the numbers that the process with most keeps of each moment, with tensors of ``sizes`` numbers."""
    owners = shares(sizes, processes)
    return max(sum(n for n, own in zip(sizes, owners, strict=True) if own == rank) for rank in range(processes))


def gather_states(optimizer: torch.optim.Optimizer, ranks: Ranks, own: Callable[[Tensor, str], bool]) -> None:
    """Give every process the states that the others hold.

    Args:
        own: says, of a weight of any shape and the name of a state, whether this process is the one that has it.
    """
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    for owner in range(ranks.size):
        tensors: dict[str, Tensor] = {}
        rest: dict[str, Any] = {}
        for number, weight in enumerate(weights) if owner == ranks.rank else ():
            for name, value in optimizer.state.get(weight, {}).items():
                if own(weight, name):
                    (tensors if isinstance(value, Tensor) else rest)[f"{number}/{name}"] = value
        shared = {**ranks.share(tensors, owner), **ranks.agree(rest, owner)}
        for flat, value in shared.items() if owner != ranks.rank else ():
            place, name = flat.split("/", 1)
            optimizer.state[weights[int(place)]][name] = value


class ShardedOptimizer(torch.optim.Optimizer):
    """An optimizer over the tensors of this process, which gets the weights of all others from theirs.

    Tensors are never cut, so that it is right for every optimizer that steps a tensor by itself: LANS with its norms,
    Muon with its matrices. That is why torch's ``ZeroRedundancyOptimizer`` is not used: it shares out tensors the same
    way, but makes optimizers from a class and keeps states by number, where growth and checkpoints need them by name.

    Groups are those of all tensors; schedules write into them. ``state`` holds this process's own, and after
    :meth:`gather` all, until the next step.

    Args:
        build: makes the optimizer over some groups. groups: of all parameters. ranks: that share.

    Attributes:
        owners: process of each tensor.
        moved: tensors that take the coming step, where gradients have been left to their owners.
        traffic: of the weights that go round.
    """

    def __init__(self, build: Callable[[Groups], torch.optim.Optimizer], groups: Groups, ranks: Ranks) -> None:
        self.ranks, weights = ranks, [weight for group in groups for weight in group["params"]]
        self.owners = dict(zip(weights, shares([weight.numel() for weight in weights], ranks.size), strict=True))
        self.moved: set[Tensor] = set()
        self.traffic = Traffic()
        self.inner = build([_only(group, self._is_own) for group in groups])
        super().__init__(groups, self.inner.defaults)
        for group, own in zip(self.param_groups, self.inner.param_groups, strict=True):
            # What the optimizer has settled for a group, such as its kernel.
            group.update({name: value for name, value in own.items() if name not in ("params", "names")})
        self.state = self.inner.state

    def __getattr__(self, name: str) -> Any:
        # The path of a fused step and the like: what an optimizer may have beside torch's interface.
        if name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """Step the tensors of this process, and get the weights of the others."""
        assert closure is None, "gradients are there already"
        self.keep_own()
        moved = [[] for _ in range(self.ranks.size)]  # type: list[list[Tensor]]
        for group, own in zip(self.param_groups, self.inner.param_groups, strict=True):
            own.update({name: value for name, value in group.items() if name not in ("params", "names")})
            for weight in group["params"]:
                if weight.grad is not None or weight in self.moved:
                    moved[self.owners[weight]].append(weight)
        self.inner.step()
        self.moved.clear()
        self._spread(moved)

    def gather(self) -> None:
        """Have every process hold all states: for a checkpoint, and where growth copies states."""
        self.keep_own()
        gather_states(self, self.ranks, lambda weight, _name: self._is_own(weight))

    def keep_own(self) -> None:
        """Let go of the states of tensors that are another process's."""
        for weight in [each for each in self.state if not self._is_own(each)]:
            del self.state[weight]

    def _is_own(self, weight: Tensor) -> bool:
        return self.owners[weight] == self.ranks.rank

    def _spread(self, moved: list[list[Tensor]]) -> None:
        """Give all processes the weights that each has moved, in the order of processes."""
        sent = []
        with self.traffic.waiting():
            for owner, weights in enumerate(moved):
                if weights:
                    flat = torch.cat([weight.detach().reshape(-1) for weight in weights])
                    sent.append((weights, flat, dist.broadcast(flat, src=owner, async_op=True)))
            for weights, flat, work in sent:
                work.wait()
                for weight, part in zip(weights, flat.split([each.numel() for each in weights]), strict=True):
                    weight.detach().copy_(part.view(weight.shape))
        # A ring that passes every weight on to all: as each process sends on average.
        total = sum(flat.nbytes for _, flat, _ in sent)
        self.traffic.sent_bytes += total * (self.ranks.size - 1) / self.ranks.size


def _only(group: dict[str, Any], wanted: Callable[[Tensor], bool]) -> dict[str, Any]:
    kept = [(name, weight) for name, weight in zip(group["names"], group["params"], strict=True) if wanted(weight)]
    return {**group, "params": [weight for _, weight in kept], "names": [name for name, _ in kept]}
