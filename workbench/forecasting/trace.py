"""One micro-batch of a recipe on tensors without memory: every operation and every kept tensor, by part of the model.

What a step costs is not guessed from a formula per architecture: the model's own code runs, forward and backward, on
meta tensors (``forecasting/meta_tensors.py``). So whatever an architecture does is counted. It runs once for any number
of rows: the rows are a large prime, and every size divisible by it grows with them.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import gc
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch

from workbench.choices.architectures.architecture import Architecture
from workbench.choices.data.tokens import Batch
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.progress import Budget, Progress
from workbench.forecasting.linear_trace import LinearTrace, TraceRecorder
from workbench.forecasting.meta_tensors import ModelSpec, meta_model, meta_parameters
from workbench.forecasting.operations import Trace

# Shape legend: B rows, T positions of a row.

PRIMES = (10_007, 10_009, 10_037, 10_039, 10_061)
"""Rows that are traced: the first of them that divides no other size of the model."""


def trace(spec: ModelSpec, rows: int, length: int, dtype: torch.dtype) -> Trace:
    """Forward and backward of one micro-batch; remembered for all numbers of rows and of layers.

    Args:
        spec: of the model; of equal layers, one is built.
        rows, length: B and T of the micro-batch.
    """
    short = shortened(spec.architecture)
    linear = _linear_trace(spec._replace(architecture=short.architecture), short.runs, length, dtype)
    # Of those that run, all but the last stand for layers before the last.
    place = {layer: index for index, layer in enumerate(layer for layer, run in enumerate(short.runs) if run)}
    return linear.at(rows, tuple(place[short.representative(layer)] for layer in range(spec.architecture.layers - 1)))


class Short(NamedTuple):
    """A shallow architecture that has one of each sort of layer that a deep one has.

    Attributes:
        architecture: the shallow one.
        runs: by its layers, those that are traced: one of each sort, and the last.
        twins: by layer of the deep one, the layer here that has the same parameters.
        sorts: by layer of the deep one, what it sees; layers that see as much cost as much.
    """

    architecture: Architecture
    runs: tuple[bool, ...]
    twins: tuple[int, ...]
    sorts: tuple[float, ...]

    def representative(self, layer: int) -> int:
        """Return the traced layer that costs what ``layer`` of the deep architecture costs,
        as long as it is not the last.
        """
        traced = (i for i, run in enumerate(self.runs[:-1]) if run and self.sorts[i] == self.sorts[layer])
        return next(traced)


@functools.lru_cache(maxsize=256)
def shortened(architecture: Architecture) -> Short:
    """Return the shallowest architecture whose first layer, last layer
    and one of each sort between are those of a deep one.

    Example:
        >>> from workbench.choices.architectures import PreLN
        >>> shortened(PreLN(layers=6)).architecture.layers
        3
        >>> shortened(PreLN(layers=6)).twins
        (0, 1, 1, 1, 1, 2)
    """
    spans = tuple(architecture.layer_span(layer, 1e9) for layer in range(architecture.layers))
    fits = (
        n for n in range(min(3, len(spans)), len(spans) + 1)
        if spans[n - 1] == spans[-1] and set(spans[1 : n - 1]) >= set(spans[1:-1])
    )  # fmt: skip
    layers = next(fits)
    # The last of a sort: the first layer of all may lack a norm.
    runs = (*(span not in spans[layer + 1 : layers - 1] for layer, span in enumerate(spans[: layers - 1])), True)
    middle = {span: layer for layer, span in reversed(list(enumerate(spans[: layers - 1]))) if layer}
    twins = tuple(
        0 if layer == 0 and layers > 1 else layers - 1 if layer == len(spans) - 1 else middle[span]
        for layer, span in enumerate(spans)
    )
    # Weights are not read from a disk for their shapes.
    update = {"layers": layers} | ({"pretrained": False} if getattr(architecture, "pretrained", False) else {})
    return Short(architecture.model_copy(update=update), runs, twins, spans)


@functools.lru_cache(maxsize=128)
def _linear_trace(small: ModelSpec, runs: tuple[bool, ...], length: int, dtype: torch.dtype) -> LinearTrace:
    """Return a trace for any number of rows; arguments as for :func:`trace`."""
    # A copy: what a model notes about itself while it runs is not for others.
    model = copy.copy(meta_model(small))
    vocabulary, knobs = small.vocabulary, small.architecture.model_dump().values()
    sizes = {vocabulary.size, vocabulary.used, small.longest, length, *_numbers(knobs)}
    rows = next(prime for prime in PRIMES if not any(size and size % prime == 0 for size in sizes))
    recorder = TraceRecorder(model, rows, runs)
    start = Progress(step=0, tokens=0, seconds=0.0, budget=Budget())
    layers = len(runs)
    plan = LayerPlan(runs, (1.0,) * layers, (True,) * layers, (1.0,) * layers, layers)
    with _no_collection(), meta_parameters(model), recorder, recorder.placed():
        ids, pieces = (torch.zeros(rows, length, dtype=kind) for kind in (torch.int64, torch.int32))
        batch = Batch(ids, ids.clone(), pieces, torch.zeros(rows, dtype=torch.int64))
        recorder.begin()
        with torch.autograd.graph.saved_tensors_hooks(recorder.keep, lambda tensor: tensor):
            with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
                loss = model(batch, plan, start)
            recorder.turn()
        loss.over(dict.fromkeys(loss.parts, 1)).backward()
    return recorder.finish(rows * max(1, round(small.objective.labelled_fraction(start) * length)))


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Inside, Python's collector of cycles rests: thousands of short-lived tensors would call it for half the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _numbers(values: Iterable[Any]) -> Iterator[int]:
    return (value for value in values if isinstance(value, int) and not isinstance(value, bool))
