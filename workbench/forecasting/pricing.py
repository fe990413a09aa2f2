"""Price a traced micro-batch at the rates of a machine: seconds by part of the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution import WHOLE, MemoryPlan
from workbench.forecasting.operations import PRODUCT_KINDS, Operation, Part, Trace
from workbench.forecasting.rates import Rates

CALL_SECONDS = 6e-6
"""Seconds of an operation beside its kernel: Python and autograd. Between 5e-6 and 8e-6 the mean error over the 32
recipes of docs/results/forecast.json moves by half a point; fitting this and three factors to whole steps saved no
more."""
FUSED_SHARE = 0.6
"""Share of the time that kernels between products take beyond their calls: the rest when neighbours are compiled into
one. Mean error over the compiled recipes of docs/results/forecast.json: 9.7%. Timing compiled kernels on the machine
and following every tensor from one to the next gave 9.9%."""


class Seconds(NamedTuple):
    """Seconds of some operations, by what they are proportional to.

    Attributes:
        moving: everything else that grows with sizes.
        calls: what the number of operations costs.
    """

    products: float = 0.0
    moving: float = 0.0
    calls: float = 0.0

    def plus(self, other: Seconds) -> Seconds:
        """Return the sum; all in seconds."""
        return Seconds(*(a + b for a, b in zip(self, other, strict=True)))

    def scaled(self, share: float) -> float:
        """Return seconds in all where sizes are a share of those priced, calls the same."""
        return share * (self.products + self.moving) + self.calls


@dataclass(frozen=True)
class Price:
    """Seconds of both passes of one part.

    Attributes:
        linear: of the forward products with weights; the gradient of the weights costs as much again.
    """

    forward: Seconds
    backward: Seconds
    linear: float

    def pays(self, trains: bool, passes: bool) -> Seconds:
        """Return seconds of a layer that trains, one that merely passes gradients on, or one below all gradients."""
        if not passes:
            return self.forward
        both = self.forward.plus(self.backward)
        return both if trains else both._replace(products=both.products - self.linear)


@dataclass(frozen=True)
class Prices:
    """Prices of a trace's parts.

    Attributes:
        layers: one of each sort.
        sorts: index into ``layers`` for every layer but the last.
    """

    shared: Price
    layers: tuple[Price, ...]
    sorts: tuple[int, ...]
    last: Price
    head: Price


def priced(trace: Trace, rates: Rates, fused: bool, launched: bool) -> Prices:
    """Return every part of a trace at a machine's rates.

    Args:
        fused: blocks and head are compiled.
        launched: calls run beside the work (a GPU), so that the longer of the two counts.
    """
    layers = tuple(_price(layer, rates, fused, launched) for layer in trace.layers)
    # What precedes the layers is never compiled.
    shared = _price(trace.shared, rates, False, launched)
    last, head = (_price(part, rates, fused, launched) for part in (trace.last, trace.head))
    return Prices(shared, layers, trace.sorts, last, head)


def micro_batch_seconds(
    prices: Prices, plan: LayerPlan, rows: float = 1.0, labels: float = 1.0, memory: MemoryPlan = WHOLE
) -> float:
    """Return seconds of one micro-batch, forward and backward, under a plan.

    Args:
        rows, labels: tokens and labelled positions as shares of those priced.
        memory: which layers run forward twice.
    """
    first = plan.trains.index(True) if True in plan.trains else plan.layers
    running = [layer for layer, run in enumerate(plan.runs) if run]
    total = prices.shared.pays(True, first == 0).scaled(rows)
    for layer in running:
        price = prices.last if layer == running[-1] else prices.layers[prices.sorts[layer]]
        total += price.pays(plan.trains[layer], layer >= first).scaled(rows)
        if layer >= first and memory.recomputes(layer):
            total += price.pays(False, False).scaled(rows)
    # The head passes gradients on unless nothing below it needs any.
    return total + prices.head.pays(plan.head, plan.head or first < plan.layers or plan.embedding).scaled(labels)


def _price(part: Part, rates: Rates, fused: bool, launched: bool) -> Price:
    forward, backward = (_seconds(operations, rates, fused, launched) for operations in (part.forward, part.backward))
    products = [operation for operation in part.forward if operation.kind == "product"]
    return Price(forward, backward, _seconds(products, rates, False, launched).products)


def _seconds(operations: Sequence[Operation], rates: Rates, fused: bool, launched: bool) -> Seconds:
    products = moving = calls = 0.0
    for operation in operations:
        line = rates.kernels.get(operation.key) or rates.kernels.get(operation.kind) or rates.kernels["other"]
        once, *grows = (rate * size for rate, size in zip(line, operation.sizes, strict=False))
        seconds, is_product = sum(grows), operation.kind in PRODUCT_KINDS
        if fused and not is_product:
            moving += FUSED_SHARE * seconds
            continue
        if is_product:
            products += seconds
        else:
            moving += seconds
        call = once + CALL_SECONDS
        calls += max(0.0, call - seconds) if launched else call
    return Seconds(products, moving, calls)
