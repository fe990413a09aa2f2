"""What telemetry costs: the same steps with all of it on and with none, in turns, in one process."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from workbench.choices.data.prepare import prepare
from workbench.recipe import Recipe
from workbench.telemetry import TelemetryWriter
from workbench.training.assemble import assemble
from workbench.training.loop import Training
from workbench.training.recorder import Recorder
from workbench.training.warmup import compile_ahead


def telemetry_overhead(recipe: Recipe, rounds: int = 10, steps: int = 20) -> dict[str, Any]:
    """Share of step time that telemetry takes, measured in pairs.

    One model in one process; blocks of steps alternate between telemetry on (scalars and layers as often as the
    recipe says) and off (not even the loss is written), and which of the two goes first alternates as well, so that
    drift and a busy moment hit both.

    Args:
        recipe: what to train.
        rounds: pairs of blocks.
        steps: per block; a multiple of ``execution.layers_every``, or the cost of layers is over- or undercounted.

    Returns:
        ``on_ms`` and ``off_ms`` (medians per step), ``overhead`` (median of the pairs' ratios minus 1), ``range``
        (their smallest and largest), ``pairs`` (all of them), ``rounds``, ``steps``.

    Raises:
        ValueError: ``steps`` is no multiple of ``execution.layers_every``.
    """
    every = recipe.execution.layers_every
    if steps % every:
        raise ValueError(f"steps {steps} must be a multiple of execution.layers_every {every}")
    prepared = prepare(recipe.data, say=lambda line: None)
    made = assemble(recipe, prepared, recipe.execution.resolve_device())
    with tempfile.TemporaryDirectory() as folder:
        writer = TelemetryWriter(Path(folder))
        training = Training(recipe, made, writer, peak_flops=1e12)
        recorders = {True: training.recorder, False: _silent(training)}
        compile_ahead(training)
        for on in (True, False):
            _block(training, recorders[on], every)
        times: dict[bool, list[float]] = {True: [], False: []}
        for number in range(rounds):
            for on in (True, False) if number % 2 == 0 else (False, True):
                times[on].append(_block(training, recorders[on], steps) / steps)
        training.close()
        writer.close()
    ratios = [on / off - 1 for on, off in zip(times[True], times[False], strict=True)]
    return {
        "on_ms": statistics.median(times[True]) * 1e3,
        "off_ms": statistics.median(times[False]) * 1e3,
        "overhead": statistics.median(ratios),
        "range": [min(ratios), max(ratios)],
        "pairs": ratios,
        "rounds": rounds,
        "steps": steps,
    }


def _silent(training: Training) -> Recorder:
    # Losses are still looked at, once per block: a run that measures nothing must notice NaN all the same.
    return Recorder(None, training.device, 1 << 30, 1 << 30, training.progress)


def _block(training: Training, recorder: Recorder, steps: int) -> float:
    training.recorder = recorder
    start = time.perf_counter()
    for _ in range(steps):
        training.step()
    training.settle()
    return time.perf_counter() - start
