"""A recipe beside its forecast, or the calibration's model beside both: children that train when they are told to."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from typing import Any

import psutil
import torch

from workbench.bench.child import begin
from workbench.bench.contender import Stage
from workbench.choices.data.prepare import prepare
from workbench.forecasting.fitted_rates import REFERENCE, SmallModel, models
from workbench.forecasting.rates import mode_of
from workbench.ops.timing import clock_of, processor_seconds
from workbench.recipe import Recipe
from workbench.training.assemble import assemble
from workbench.training.loop import Training
from workbench.training.recorder import NotFinite
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


class Trained:
    """A recipe in training, watched.

    Args:
        recipe: whose budget are the steps that will be taken.

    Attributes:
        compile_seconds, compile_wall_seconds: of processors and of the wall; 0 where nothing is compiled.
    """

    def __init__(self, recipe: Recipe) -> None:
        self._device = recipe.execution.resolve_device()
        self._clock = clock_of(self._device)
        prepared = prepare(recipe.data, say=lambda line: print(line, file=sys.stderr))
        # Threads and libraries that the first product of a process loads are no part of any model.
        (torch.randn(64, 64, requires_grad=True) @ torch.randn(64, 64)).sum().backward()
        self._memory = PeakMemory(self._device).__enter__()
        self._training = Training(recipe, assemble(recipe, prepared, self._device))
        self.compile_seconds = self.compile_wall_seconds = 0.0
        if recipe.execution.compile:
            wall, before = time.perf_counter(), processor_seconds()
            compile_ahead(self._training)
            self.compile_seconds = processor_seconds() - before
            self.compile_wall_seconds = time.perf_counter() - wall

    def take(self, steps: int) -> dict[str, Any]:
        """Take ``steps`` steps.

        Returns:
            ``seconds`` by step, of the thread where it works alone; ``wall_seconds``; and of the whole training so
            far ``memory_bytes`` of growth, ``parameters``, ``tokens`` and useful ``flops``.
        """
        walls, own = [], []
        for _ in range(steps):
            wall, start = time.perf_counter(), self._clock()
            with contextlib.suppress(NotFinite):
                self._training.step()
            if self._device.type == "cuda":
                torch.cuda.synchronize(self._device)
            own.append(self._clock() - start)
            walls.append(time.perf_counter() - wall)
        if self._device.type == "cuda":
            self._memory.grown = torch.cuda.max_memory_allocated(self._device)
        training = self._training
        return {
            "seconds": own, "wall_seconds": walls, "memory_bytes": self._memory.grown,
            "parameters": training.assembled.parameters, "tokens": training.progress.tokens,
            "flops": training.recorder.useful_flops,
        }  # fmt: skip

    def close(self) -> None:
        """Let the threads end."""
        self._training.close()
        self._memory.__exit__()


def main() -> None:
    """Child process: ``python -m workbench.bench.forecast_worker '{"name": ..., "recipe": ...}'``.

    With ``"reference": true`` the recipe says the mode only, and the calibration's own model is trained.
    """
    setting, recipe = begin()
    stage = Stage()
    if setting.get("reference"):
        mode = mode_of(recipe.execution)
        with SmallModel(models(mode)[REFERENCE], torch.device(mode.device)) as small:
            stage.say({"ready": {}})
            while (steps := stage.next_steps()) is not None:
                stage.say({"seconds": [small.step() for _ in range(steps)]})
        return
    trained = Trained(recipe)
    reported = ("compile_seconds", "compile_wall_seconds")
    stage.say({"ready": {name: getattr(trained, name) for name in reported}})
    while (steps := stage.next_steps()) is not None:
        stage.say(trained.take(steps))
    trained.close()


if __name__ == "__main__":
    main()
