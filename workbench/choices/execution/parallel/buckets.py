"""Gradients that are summed over all processes in large pieces, while the backward pass still computes others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn

from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution.parallel.parallel import Exchange
from workbench.choices.execution.ranks import Ranks, together


class Sent(NamedTuple):
    """A bucket on its way.

    Attributes:
        parameters: that have a gradient. wait: returns their sum, (numbers,), or None where another process keeps it.
    """

    parameters: list[Tensor]
    wait: Callable[[], Tensor | None]


Send = Callable[[int, list[Tensor], Tensor], tuple[Callable[[], Tensor | None], float]]
"""Takes the number of a bucket, its parameters and gradients (numbers,).

Gives what waits for the sum, see :class:`Sent`, and the bytes that this process sends, as a ring sends them.
"""


class Buckets(Exchange):
    """Sums of gradients, bucket by bucket, from the last layer to the first.

    Why not torch's ``DistributedDataParallel``: it sends a zero for every weight of a layer that was dropped, searches
    the graph for those in every step, and has to be made anew when a model grows. A plan says all of that beforehand.

    A bucket is sent when the last of the gradients that its layers will have is there, and never before an earlier one:
    all processes must send in one order. Weights without a gradient are not sent.

    Args:
        ranks: that sum.
        bucket_bytes: size of a bucket; one tensor may be larger.
        send: instead of a plain sum. overlaps: False sends all when the backward pass is over.
    """

    def __init__(self, ranks: Ranks, bucket_bytes: int, send: Send | None = None, overlaps: bool = True) -> None:
        super().__init__(ranks)
        self._bytes, self._send, self._overlaps = bucket_bytes, send or self._summed, overlaps
        self.buckets: list[list[Tensor]] = []
        self._place: dict[Tensor, int] = {}
        self._hooked: dict[Tensor, Any] = {}
        self._missing: list[set[Tensor]] = []
        self._sent: list[Sent] = []
        self._next, self._armed = 0, False

    def watch(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """See :meth:`Exchange.watch`."""
        for hook in self._hooked.values():
            hook.remove()
        self._hooked.clear()
        # The reverse of the order in which layers run is that in which gradients come.
        weights: list[Tensor] = [each for each in reversed(list(model.parameters())) if each.is_floating_point()]
        self.buckets = self._cut(weights)
        self._place = {weight: number for number, bucket in enumerate(self.buckets) for weight in bucket}

    def last(self, model: Any, plan: LayerPlan, whole: bool = False) -> None:
        """See :meth:`Exchange.last`; gradients come to weights that train, outside the layers that rest."""
        if not self._overlaps:
            return
        running: set[Tensor] = set()
        resting: set[Tensor] = set()
        for layer, block in enumerate(model.stacks()["main"].blocks):
            (running if layer < plan.layers and plan.runs[layer] else resting).update(block.parameters())
        resting -= running
        self._missing = [{each for each in bucket if each.requires_grad} - resting for bucket in self.buckets]
        for weight in set().union(*self._missing) - self._hooked.keys():
            self._hooked[weight] = weight.register_post_accumulate_grad_hook(self._completed)
        self._next, self._armed = 0, True

    def launch(self) -> None:
        """See :meth:`Exchange.launch`; what :meth:`last` has not begun waits for :meth:`finish`."""
        if self._armed:
            self._send_rest()

    def finish(self) -> None:
        """See :meth:`Exchange.finish`; gradients, of any shapes, become views of their bucket."""
        self._send_rest()
        with self.traffic.waiting():
            sums = [each.wait() for each in self._sent]
        for sent, flat in zip(self._sent, sums, strict=True):
            parts = [None] * len(sent.parameters) if flat is None else flat.split([p.numel() for p in sent.parameters])
            for weight, part in zip(sent.parameters, parts, strict=True):
                weight.grad = None if part is None else part.view(weight.shape)
        self._sent.clear()
        self._next = 0

    def _completed(self, weight: Tensor) -> None:
        if not self._armed:
            return
        number = self._place[weight]
        assert number >= self._next, "a gradient came to a layer that the plan lets rest, after its bucket was sent"
        self._missing[number].discard(weight)
        while self._next < len(self.buckets) and not self._missing[self._next]:
            self._send_next()

    def _send_rest(self) -> None:
        self._armed = False
        while self._next < len(self.buckets):
            self._send_next()

    def _send_next(self) -> None:
        number, self._next = self._next, self._next + 1
        weights = [weight for weight in self.buckets[number] if weight.grad is not None]
        if not weights:
            return
        flat = torch.cat([weight.grad.reshape(-1) for weight in weights])  # type: ignore[union-attr]
        with together():
            wait, sent = self._send(number, weights, flat)
        self.traffic.sent_bytes += sent
        self._sent.append(Sent(weights, wait))

    def _cut(self, weights: list[Tensor]) -> list[list[Tensor]]:
        return list(in_buckets(weights, self._bytes))

    def _summed(self, number: int, weights: list[Tensor], flat: Tensor) -> tuple[Callable[[], Tensor | None], float]:
        work = dist.all_reduce(flat, async_op=True)

        def wait() -> Tensor:
            work.wait()
            return flat

        return wait, ring(self.ranks) * flat.nbytes


def ring(ranks: Ranks) -> float:
    """Return how often each process sends a tensor that a ring of all adds up and hands out: 2 (n - 1) / n."""
    return 2 * (ranks.size - 1) / ranks.size


def in_buckets(weights: Sequence[Tensor], most: int) -> Iterator[list[Tensor]]:
    """Yield weights in their order, cut where a bucket is full or the next one is of another type or device."""
    bucket: list[Tensor] = []
    for weight in weights:
        full = sum(each.nbytes for each in bucket) + weight.nbytes > most
        if bucket and (full or (weight.dtype, weight.device) != (bucket[0].dtype, bucket[0].device)):
            yield bucket
            bucket = []
        bucket.append(weight)
    if bucket:
        yield bucket
