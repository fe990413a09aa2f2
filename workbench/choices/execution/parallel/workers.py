"""An optimizer of several workers: each steps with gradients and states of its own, and one update is made of all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from workbench.choices.execution.parallel.parallel import Exchange, Groups, Traffic
from workbench.choices.execution.parallel.sharding import gather_states
from workbench.choices.execution.ranks import Ranks

Updates = list[Tensor]
"""Sums that one worker, or a group of them, adds to the parameters that have a gradient."""
Pair = Callable[[Updates, Updates], Updates]


class WorkersOptimizer(torch.optim.Optimizer):
    """An optimizer whose step is combined from those of ``workers``, as many in each process, in a binary tree.

    Gradients of one worker after the other are put by with :meth:`put_by`; :meth:`step` takes those of the last. The
    state of a parameter holds the entries of all workers here; those of worker w > 0 end in ``:w``.

    Args:
        build: makes the optimizer over some groups. groups: of all parameters. ranks: that carry the workers.
        workers: a power of two that ``ranks`` divide. pair: makes one update of two.

    Attributes:
        traffic: of the updates.
    """

    def __init__(
        self, build: Callable[[Groups], torch.optim.Optimizer], groups: Groups, ranks: Ranks, workers: int, pair: Pair
    ) -> None:
        assert workers % ranks.size == 0, (workers, ranks)
        here = workers // ranks.size
        self.ranks, self.pair, self.own = ranks, pair, range(ranks.rank * here, (ranks.rank + 1) * here)
        self.inner = build(groups)
        super().__init__(groups, self.inner.defaults)
        # The same ones: schedules and checkpoints write into them.
        self.param_groups = self.inner.param_groups
        self.traffic = Traffic()
        self._done = 0
        self._moved: list[Tensor] = []
        self._tree: list[tuple[int, Updates]] = []

    def __getattr__(self, name: str) -> Any:
        # The path of a fused step and the like: what an optimizer may have beside torch's interface.
        if name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    @torch.no_grad()
    def put_by(self) -> None:
        """Take the step of the next worker, keep what it adds, and give weights and gradients back."""
        if self._done == 0:
            self._prepare()
        worker = self.own[self._done]
        moved = [weight for group in self.param_groups for weight in group["params"] if weight.grad is not None]
        assert self._done == 0 or moved == self._moved, "all workers train the same tensors"
        before = [weight.detach().clone() for weight in moved]
        self.inner.state = self._state_of(worker)
        self.inner.step()
        for weight, state in self.inner.state.items():
            for name, value in state.items():
                self.state[weight][_entry(name, worker)] = value
        update = [weight.detach() - old for weight, old in zip(moved, before, strict=True)]
        for weight, old in zip(moved, before, strict=True):
            weight.copy_(old)
        self.zero_grad(set_to_none=True)
        self._done, self._moved = self._done + 1, moved
        # Pairs as soon as they are there: no more updates are kept than the tree is high.
        self._tree.append((1, update))
        while len(self._tree) > 1 and self._tree[-1][0] == self._tree[-2][0]:
            (size, left), (_, right) = self._tree[-2:]
            self._tree[-2:] = [(2 * size, self.pair(left, right))]

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """Take the step of the last worker here, and move the weights by what all processes make of theirs."""
        assert closure is None, "gradients are there already"
        self.put_by()
        assert self._done == len(self.own), "a step is due when all workers but one have put theirs by"
        ((_, update),) = self._tree
        for weight, move in zip(self._moved, self._of_all(update), strict=True):
            weight.add_(move)
        self._done = 0
        self._tree.clear()
        self._moved = []

    def gather(self) -> None:
        """Have every process hold the states of all workers: for a checkpoint, and where growth copies states."""
        self._prepare()
        gather_states(self, self.ranks, lambda _weight, name: _worker(name) in self.own)

    def _prepare(self) -> None:
        """Hold the states of the workers here alone; a worker without one gets a copy of the first's."""
        for weight, state in self.state.items():
            kept: dict[str, Any] = {}
            for worker in self.own if state else ():
                own = _of_worker(state, worker)
                if not own:
                    first = _of_worker(state, 0)
                    own = {name: value.clone() if isinstance(value, Tensor) else value for name, value in first.items()}
                kept |= {_entry(name, worker): value for name, value in own.items()}
            self.state[weight] = kept

    def _state_of(self, worker: int) -> defaultdict[Tensor, Any]:
        found = {weight: _of_worker(state, worker) for weight, state in self.state.items()}
        return defaultdict(dict, {weight: state for weight, state in found.items() if state})

    def _of_all(self, update: Updates) -> Updates:
        """Return the update of all processes: each exchanges with a neighbour, then the pairs with pairs."""
        distance = 1
        while distance < self.ranks.size:
            partner = self.ranks.rank ^ distance
            flat = torch.cat([each.reshape(-1) for each in update])
            other = torch.empty_like(flat)
            with self.traffic.waiting():
                sent = dist.isend(flat, partner)
                dist.recv(other, partner)
                sent.wait()  # type: ignore[union-attr]
            self.traffic.sent_bytes += flat.nbytes
            parts = other.split([each.numel() for each in update])
            theirs = [part.view(each.shape) for part, each in zip(parts, update, strict=True)]
            update = self.pair(update, theirs) if self.ranks.rank < partner else self.pair(theirs, update)
            distance *= 2
        return update


class WorkersExchange(Exchange):
    """Nothing but updates is exchanged, by the optimizer; it holds the states of all workers for a checkpoint."""

    def watch(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """See :meth:`Exchange.watch`."""
        assert isinstance(optimizer, WorkersOptimizer)
        self.optimizer, optimizer.traffic = optimizer, self.traffic

    def settle(self, everywhere: bool) -> None:
        """See :meth:`Exchange.settle`; what is too much goes at the next step."""
        self.optimizer.gather()


def _entry(name: str, worker: int) -> str:
    return f"{name}:{worker}" if worker else name


def _worker(entry: str) -> int:
    return int(entry.partition(":")[2] or 0)


def _of_worker(state: dict[str, Any], worker: int) -> dict[str, Any]:
    return {entry.partition(":")[0]: value for entry, value in state.items() if _worker(entry) == worker}
