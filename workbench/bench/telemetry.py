"""Measure the cost of all telemetry: the same steps with it on and with none, in turns, in one process.

The share sought is a hundredth of a step, and neighbours on a shared machine move single steps by a tenth. They only
ever add time, so steps of one sort are compared by a low quantile of their times, not by their mean.
"""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from workbench.base.errors import WorkbenchError
from workbench.bench.harness import recipe_of
from workbench.bench.rounds import alternate
from workbench.bench.table import Options
from workbench.choices.data.prepare import prepare
from workbench.ops.timing import wait_for
from workbench.recipes.recipe import Recipe
from workbench.telemetry.streams import TelemetryWriter
from workbench.training.assemble import assemble
from workbench.training.loop import Training
from workbench.training.recorder import Recorder
from workbench.training.warmup import compile_ahead

QUANTILE = 0.2
"""Quantile of a sort's steps that counts: low enough to exclude disturbed ones, high enough to rest on many."""

RESAMPLES = 2000


def telemetry_overhead(recipe: Recipe, rounds: int = 60, steps: int = 10) -> dict[str, Any]:
    """Return share of step time that telemetry takes, measured in pairs.

    One model in one process; blocks of steps alternate between telemetry on (scalars and layers as often as the
    recipe says) and off (not even the loss is written), and which of the two goes first alternates as well, so that
    drift hits both. Every step's wall time is kept, by sort: off, on without layers, on with layers.

    Args:
        steps: per block; a multiple of ``execution.layers_every``, or the cost of layers is over- or undercounted.

    Returns:
        ``overhead`` (share of step time, 0.01 is one percent), ``interval`` (95%, bootstrap over blocks), ``off_ms``,
        ``scalars_ms``, ``layers_ms`` (per step of each sort), ``rounds``, ``steps``, ``quantile``.

    Raises:
        WorkbenchError: ``steps`` is no multiple of ``execution.layers_every``, or scalars are not of every step: a low
            quantile would not see the few steps that record them.
    """
    every = recipe.execution.layers_every
    if steps % every:
        raise WorkbenchError(f"--steps: {steps} must be a multiple of execution.layers_every {every}")
    if recipe.execution.scalars_every not in (1, every):
        raise WorkbenchError(
            f"execution.scalars_every: {recipe.execution.scalars_every} cannot be measured; use 1, or {every} as for "
            "layers"
        )
    prepared = prepare(recipe.data, say=lambda line: None)
    assembled = assemble(recipe, prepared)
    with tempfile.TemporaryDirectory() as folder:
        writer = TelemetryWriter(Path(folder))
        training = Training(recipe, assembled, writer, peak_flops=1e12)
        recorders = {"on": training.recorder, "off": _silent(training)}
        compile_ahead(training)
        for each in recorders.values():
            _block(training, each, every)
        times = alternate({name: partial(_block, training, each, steps) for name, each in recorders.items()}, rounds)
        training.close()
        writer.close()
    on_RS, off_RS = np.stack(times["on"]), np.stack(times["off"])
    # Layers are recorded on the first step of each period, and blocks hold whole periods.
    layered_S = np.arange(steps) % every == 0
    share, parts = _share(on_RS, off_RS, layered_S)
    drawn = np.random.default_rng(0).integers(rounds, size=(RESAMPLES, rounds))
    resampled = [_share(on_RS[rows], off_RS[rows], layered_S)[0] for rows in drawn]
    return {
        "overhead": share,
        "interval": [float(np.quantile(resampled, 0.025)), float(np.quantile(resampled, 0.975))],
        **parts,
        "rounds": rounds,
        "steps": steps,
        "quantile": QUANTILE,
    }


def _share(on_RS: np.ndarray, off_RS: np.ndarray, layered_S: np.ndarray) -> tuple[float, dict[str, float]]:
    """Return overhead and milliseconds per sort of step, from seconds per (round, step of the block)."""
    off = float(np.quantile(off_RS, QUANTILE))
    scalars = float(np.quantile(on_RS[:, ~layered_S], QUANTILE)) if (~layered_S).any() else off
    layers = float(np.quantile(on_RS[:, layered_S], QUANTILE))
    on = np.where(layered_S, layers, scalars).mean()
    return float(on / off - 1), {"off_ms": off * 1e3, "scalars_ms": scalars * 1e3, "layers_ms": layers * 1e3}


def _silent(training: Training) -> Recorder:
    # Losses are still looked at, once per block: a run that measures nothing must notice NaN all the same.
    return Recorder(None, training.device, 1 << 30, 1 << 30, training.progress)


def _block(training: Training, recorder: Recorder, steps: int) -> np.ndarray:
    """Return seconds of each of ``steps`` steps; on a GPU the device is waited for after every one."""
    training.recorder = recorder
    seconds = np.empty(steps)
    for number in range(steps):
        start = time.perf_counter()
        training.step()
        wait_for(training.device)
        seconds[number] = time.perf_counter() - start
    training.settle()
    return seconds


def measured(options: Options) -> dict[str, Any]:
    """Measure what the options ask for."""
    recipe = recipe_of(options)
    return {"recipe": recipe.to_dict(), **telemetry_overhead(recipe, options.rounds, options.steps)}
