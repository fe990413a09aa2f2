"""The time of a step by kind of work: ordinary steps of a run, first timed, then under torch's profiler."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from typing import Any

import numpy as np
from torch.autograd import DeviceType
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile, record_function

from workbench.base.errors import WorkbenchError
from workbench.ops.timing import QUANTILE, clock_of, wait_for
from workbench.telemetry.profile_table import STEPS
from workbench.training.loop import Training
from workbench.training.machine import gemm_flops

DATA, UPDATE = "workbench.data", "workbench.update"
"""Stretches of a step that are marked for the profiler."""

# By the beginning of an operation's name, the first that fits; an operation counts as what it is called from where
# that is named here, too.
_RANGES = {
    DATA: "data", UPDATE: "optimizer", "Optimizer.": "optimizer", "aten::_foreach": "optimizer",
}  # fmt: skip
_OPERATIONS = {
    "aten::mm": "products", "aten::addmm": "products", "aten::linear": "products", "aten::_scaled_mm": "products",
    "mkldnn::_linear": "products", "aten::bmm": "batched products", "aten::baddbmm": "batched products",
    "aten::_scaled_dot_product": "batched products", "aten::_flash_attention": "batched products",
    "torch_attn::": "batched products", "aten::": "pointwise regions", "## Call CompiledFxGraph": "pointwise regions",
    "triton_": "pointwise regions",
}  # fmt: skip
PARTS = ("products", "batched products", "pointwise regions", "optimizer", "data")
"""The parts of a step; the rest is Python, autograd, guards of compiled code and, on a GPU, waiting."""


def profiled(training: Training, interruption: Callable[[], str] = lambda: "") -> dict[str, Any]:
    """Take up to twice :data:`STEPS` steps of a run and say where their time went.

    Args:
        interruption: called before every step, outside of what is measured; text that is not empty says why the
            profile ends there, with the steps that it has.

    Returns:
        JSON-able: ``parts``, shares of a step by :data:`PARTS` and ``rest``, which sum to 1; ``step_seconds``, the low
        quantile of undisturbed steps; ``tokens_per_second`` and ``mfu`` at that speed, the latter as a share of
        ``gemm_flops``, the measured rate of a large matrix product (of all processes); ``steps`` looked into;
        ``operations``, the dearest by name with their share.

    Raises:
        WorkbenchError: the run has no steps left, or was interrupted before one was looked into.
    """
    seconds, flops, tokens = _timed(training, interruption)
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (training.device.type == "cuda")
    events, steps, total = list[FunctionEvent](), 0, 0.0
    for _ in _steps(training, interruption):
        # One step at a time: what is done between two steps on request is no part of them.
        with _marked(training), profile(activities=activities) as found, record_function("workbench.all"):
            training.step()
            wait_for(training.device)
        step = list(found.events() or ())
        total += next(event.cpu_time_total for event in step if event.name == "workbench.all")
        events += step
        steps += 1
    if not steps or math.isnan(seconds):
        why = interruption()
        raise WorkbenchError(
            f"{why}: no step has been looked into yet; ask for a profile when it trains again"
            if why
            else "the run is over before enough steps could be looked into; give it a larger budget"
        )
    parts, operations = shares(events, total, device=training.device.type == "cuda")
    rate = gemm_flops(training.engine.mode) * training.engine.ranks.size
    return {
        "parts": parts,
        "step_seconds": seconds,
        "tokens_per_second": tokens / seconds,
        "mfu": flops / seconds / rate,
        "gemm_flops": rate,
        "steps": steps,
        "operations": operations,
        "engine": training.engine.described(),
    }


def shares(
    events: Iterable[FunctionEvent], total: float, *, device: bool
) -> tuple[dict[str, float], list[tuple[str, float]]]:
    """Return shares of ``total`` microseconds by part, and of the ten dearest operations.

    Args:
        events: of the profiler.
        device: whether a GPU's time counts instead of the host's.
    """
    parts, operations = dict.fromkeys(PARTS, 0.0), dict[str, float]()
    for event in events:
        # A GPU's kernels and marks are listed as well: their time is that of the operations that launched them.
        if event.device_type != DeviceType.CPU:
            continue
        own = (event.self_device_time_total if device else event.self_cpu_time_total) / total
        part = _part(event)
        # A compiled graph's name ends in a digest.
        name = event.name.split(" f", 1)[0] if event.name.startswith("## Call") else event.name
        if part is not None:
            parts[part] += own
            operations[name] = operations.get(name, 0.0) + own
    dearest = sorted(operations.items(), key=lambda item: -item[1])[:10]
    return {**parts, "rest": max(0.0, 1.0 - sum(parts.values()))}, dearest


def _part(event: FunctionEvent) -> str | None:
    above: FunctionEvent | None = event
    while above is not None:
        for name, part in _RANGES.items():
            if above.name.startswith(name):
                return part
        above = above.cpu_parent
    return next((part for name, part in _OPERATIONS.items() if event.name.startswith(name)), None)


def _steps(training: Training, interruption: Callable[[], str]) -> Iterator[int]:
    for number in range(STEPS):
        if training.progress.done or interruption():
            return
        yield number


def _timed(training: Training, interruption: Callable[[], str]) -> tuple[float, float, float]:
    """Return seconds (the low quantile), useful FLOPs and tokens of a step."""
    clock, seconds = clock_of(training.device), []
    flops, tokens = training.recorder.useful_flops, training.progress.tokens
    for _ in _steps(training, interruption):
        began = clock()
        training.step()
        wait_for(training.device)
        seconds.append(clock() - began)
    count = max(1, len(seconds))
    flops, tokens = training.recorder.useful_flops - flops, training.progress.tokens - tokens
    return float(np.quantile(seconds or [np.nan], QUANTILE)), flops / count, tokens / count


@contextlib.contextmanager
def _marked(training: Training) -> Iterator[None]:
    """Inside, the profiler sees where batches are fetched and where weights are updated."""
    places: list[tuple[MutableMapping[str, Any], str, Any, str]] = [
        (vars(training.batches), "next", training.batches.next, DATA),
        (vars(training.engine), "finish", training.engine.finish, UPDATE),
        (vars(training.engine), "step", training.engine.step, UPDATE),
    ]
    for names, name, method, mark in places:
        names[name] = _recorded(method, mark)
    try:
        yield
    finally:
        for names, name, _, _ in places:
            del names[name]


def _recorded(method: Any, mark: str) -> Any:
    def recorded(*args: Any, **kwargs: Any) -> Any:
        with record_function(mark):
            return method(*args, **kwargs)

    return recorded
