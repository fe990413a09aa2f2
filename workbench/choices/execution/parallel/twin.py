"""A twin of the model, whose weights are cut, one part a process, goes through the passes."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard
from torch.optim import Optimizer

from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution.parallel.parallel import Exchange
from workbench.choices.execution.ranks import Ranks, get_on, together


@dataclass(frozen=True)
class Cut:
    """A weight of the run's model and the twin's, which is cut over the processes, or whole in all of them.

    Attributes:
        weight: holds the part of this process, or the whole tensor. twin: the parameter, a DTensor where it is cut.
        parts: matrices that are stacked along ``dim``, each of which is cut.
    """

    weight: Tensor
    twin: Any
    parts: int = 1

    @property
    def dim(self) -> int | None:
        """Return the dimension that is cut; None for a weight that is whole."""
        placed = self.twin.placements[0] if isinstance(self.twin, DTensor) else None
        return placed.dim if isinstance(placed, Shard) else None

    @property
    def local(self) -> Tensor:
        """Return what the twin holds of it here."""
        return self.twin.to_local() if isinstance(self.twin, DTensor) else self.twin.data  # type: ignore[no-any-return]

    def of(self, tensor: Tensor, ranks: Ranks) -> Tensor:
        """Return the part of this process of a whole tensor of the weight's shape, or ``tensor`` if it is that part."""
        if self.dim is None or tensor.shape == self.local.shape:
            return tensor
        found = []
        for stacked in tensor.chunk(self.parts, self.dim):
            longest = -(-stacked.shape[self.dim] // ranks.size)
            begin = min(ranks.rank * longest, stacked.shape[self.dim])
            found.append(stacked.narrow(self.dim, begin, min(longest, stacked.shape[self.dim] - begin)))
        return torch.cat(found, self.dim)

    def gathered(self, local: Tensor, ranks: Ranks) -> Tensor:
        """Return the whole tensor of the parts of all processes, of which ``local`` is this one's."""
        if self.dim is None:
            return local
        # Only a weight without stacked matrices may be cut unevenly.
        shape = [*self.twin.shape]
        shape[self.dim] = -(-shape[self.dim] // ranks.size)
        padded = local.new_zeros(shape)
        padded.narrow(self.dim, 0, local.shape[self.dim]).copy_(local)
        all_parts = [torch.empty_like(padded) for _ in range(ranks.size)]
        with together():
            dist.all_gather(all_parts, padded)
        chunks = [each.chunk(self.parts, self.dim) for each in all_parts]
        whole = torch.cat([each[part] for part in range(self.parts) for each in chunks], self.dim)
        return whole.narrow(self.dim, 0, self.twin.shape[self.dim])


class TwinExchange(Exchange):
    """Sends a twin of the model through the passes, whose weights torch has made DTensors.

    Between two steps, the run's own model holds the parts of this process: its parameters and the twin's share their
    memory. So optimizer, clipping and schedules work on parts, as if these were the weights, which is right for an
    optimizer that treats every number by itself. :meth:`settle` makes the model whole, and the next pass cuts it again.

    Args:
        ranks: that share.
    """

    shares_norm = True

    def __init__(self, ranks: Ranks) -> None:
        super().__init__(ranks)
        self.model: Any = None
        self.twin: Any = None
        self.cuts: list[Cut] = []
        self._is_cut = False

    def cut(self, twin: Any, mesh: Any) -> Mapping[str, int]:
        """Cut the weights of ``twin`` over a mesh of all processes.

        Returns:
            How many matrices are stacked in a weight, by its name; 1 where it is left out.
        """
        raise NotImplementedError

    def gradient(self, cut: Cut) -> Tensor:
        """Return the gradient of this process's part, of the twin's that is there; count what was sent for it."""
        raise NotImplementedError

    def passing(self) -> AbstractContextManager[None]:
        """See :meth:`Exchange.passing`."""
        return together(passing=True)

    def watch(self, model: nn.Module, optimizer: Optimizer) -> None:
        """See :meth:`Exchange.watch`; the model is whole."""
        if model is not self.model:
            self.model, self.twin, self.cuts, self._is_cut = model, None, [], False
        self.optimizer = optimizer

    def module(self, model: Any, plan: LayerPlan) -> Any:
        """See :meth:`Exchange.module`; the twin."""
        if model is not self.model:
            # Of a later stage, as rehearsals meet it.
            return model
        if not self._is_cut:
            self._cut(model)
        self.twin.choice, self.twin.reference = model.choice, model.reference
        self.twin.stacks()["main"].taps = model.stacks()["main"].taps
        self.twin.freeze_outside(plan)
        return self.twin

    def forget(self) -> None:
        """See :meth:`Exchange.forget`."""
        for cut in self.cuts:
            cut.twin.grad = None

    def finish(self) -> None:
        """See :meth:`Exchange.finish`; the parts of this process."""
        for cut in self.cuts:
            # Nothing, where there are fewer rows than processes.
            if cut.twin.grad is not None and cut.weight.numel():
                cut.weight.grad = self.gradient(cut)
        self.forget()

    @torch.no_grad()
    def settle(self, everywhere: bool) -> None:
        """See :meth:`Exchange.settle`; the model's weights are whole as well, of the shapes that they began with."""
        cuts = [cut for cut in self.cuts if cut.dim is not None]
        if not cuts:
            return
        keeps = everywhere or not self.ranks.rank
        # Of the first process, which has a part of every tensor, and so a state where any has.
        kinds = self.ranks.agree([[(key, value.dtype) for key, value in self._moments(cut)] for cut in cuts])
        for cut, moments in zip(cuts, kinds, strict=True):
            # Whether this process is whole already (it was settled before) or not, all gather the same.
            full = cut.gathered(cut.local, self.ranks)
            for key, dtype in moments:
                value = self.optimizer.state.get(cut.weight, {}).get(key)
                part = cut.local.new_empty(cut.local.shape, dtype=dtype) if value is None else cut.of(value, self.ranks)
                moment = cut.gathered(part, self.ranks)
                if keeps:
                    self.optimizer.state[cut.weight][key] = moment
            if keeps:
                cut.weight.data = full
        self._is_cut = self._is_cut and not keeps

    @torch.no_grad()
    def _cut(self, model: nn.Module) -> None:
        """Let the model hold its parts alone; all processes do it in the same pass."""
        if self.twin is None:
            self.twin = copy.deepcopy(model)
            mesh = init_device_mesh(next(model.parameters()).device.type, (self.ranks.size,))
            stacked = self.cut(self.twin, mesh)
            for stack in self.twin.stacks().values():
                for block in stack.blocks:
                    block.register_forward_hook(_got_on)
            whole = dict(model.named_parameters())
            self.cuts = [Cut(whole[name], own, stacked.get(name, 1)) for name, own in self.twin.named_parameters()]
        for cut in self.cuts:
            local = cut.local
            for key, value in self._moments(cut):
                part = cut.of(value, self.ranks).clone(memory_format=torch.contiguous_format)
                self.optimizer.state[cut.weight][key] = part
            local.copy_(cut.of(cut.weight, self.ranks))
            cut.weight.grad = None
            cut.weight.data = local
        self._is_cut = True

    def _moments(self, cut: Cut) -> list[tuple[str, Tensor]]:
        state = self.optimizer.state.get(cut.weight, {})
        return [(key, value) for key, value in state.items() if isinstance(value, Tensor) and value.ndim]


def _got_on(_block: nn.Module, _inputs: Any, output: Tensor) -> None:
    get_on()
    if output.requires_grad:
        output.register_hook(lambda _gradient: get_on())
