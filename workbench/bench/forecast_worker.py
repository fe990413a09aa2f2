"""One recipe beside its forecast: a child process that trains a few steps and says what they took."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from typing import Any

import psutil
import torch

from workbench.bench.child import begin
from workbench.choices.data.prepare import prepare
from workbench.recipe import Recipe
from workbench.training.assemble import assemble
from workbench.training.loop import Training
from workbench.training.recorder import NotFinite
from workbench.training.stopwatch import Reference, processor_seconds, thread_clock
from workbench.training.warmup import compile_ahead

SAMPLE_SECONDS = 0.002


class PeakMemory:
    """Bytes that a process (or its GPU) holds at most while the context is open, beyond what it held before."""

    def __init__(self, device: torch.device) -> None:
        self._device, self.grown = device, 0
        self._done = threading.Event()

    def __enter__(self) -> PeakMemory:
        self._process = psutil.Process()
        if self._device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self._device)
        self._before = self._process.memory_info().rss
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        if self._device.type == "cuda":
            self.grown = torch.cuda.max_memory_allocated(self._device)

    def _watch(self) -> None:
        # Sampled: the system's own high-water mark cannot be set back to where the model begins.
        while not self._done.wait(SAMPLE_SECONDS):
            self.grown = max(self.grown, self._process.memory_info().rss - self._before)


def measured(recipe: Recipe, steps: int) -> dict[str, Any]:
    """Train ``steps`` steps of a recipe whose budget they are, and say what they took.

    Returns:
        ``seconds`` by step, of the thread where it works alone; ``wall_seconds``; ``reference`` seconds of the fixed
        piece of work beside each; ``compile_seconds`` of processors, and ``compile_wall_seconds``; ``memory_bytes`` of
        growth; ``parameters``; ``tokens`` and ``flops`` of all steps.
    """
    device = recipe.execution.resolve_device()
    clock = thread_clock(device)
    prepared = prepare(recipe.data, say=lambda line: print(line, file=sys.stderr))
    # Threads and libraries that the first product of a process loads are no part of any model.
    (torch.randn(64, 64, requires_grad=True) @ torch.randn(64, 64)).sum().backward()
    walls, own, beside = [], [], []
    reference = Reference(device)
    with PeakMemory(device) as memory:
        made = assemble(recipe, prepared, device)
        training = Training(recipe, made)
        compiled, before = time.perf_counter(), processor_seconds()
        if recipe.execution.compile:
            compile_ahead(training)
        compiling = processor_seconds() - before, time.perf_counter() - compiled
        for _ in range(steps):
            beside.append(reference.seconds())
            wall, start = time.perf_counter(), clock()
            with contextlib.suppress(NotFinite):
                training.step()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            own.append(clock() - start)
            walls.append(time.perf_counter() - wall)
        training.close()
    return {
        "seconds": own,
        "wall_seconds": walls,
        "reference": beside,
        "compile_seconds": compiling[0] if recipe.execution.compile else 0.0,
        "compile_wall_seconds": compiling[1] if recipe.execution.compile else 0.0,
        "tokens": training.progress.tokens,
        "flops": training.recorder.useful_flops,
        "memory_bytes": memory.grown,
        "parameters": made.parameters,
    }


def main() -> None:
    """Child process: ``python -m workbench.bench.forecast_worker '{"recipe": ..., "steps": ...}'``."""
    setting, recipe = begin()
    print(json.dumps(measured(recipe, setting["steps"])))


if __name__ == "__main__":
    main()
