"""A recipe in training in a child process, timed by step or by round.

What a method costs changes along its run: layers appear, freeze, are dropped more often, batches grow. So a recipe
comes with a budget of as many steps as will be timed, and every stage is met in order and in its due share.
"""

from __future__ import annotations

import contextlib
import tempfile
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch

from workbench.base.loading import COMPILER, load
from workbench.bench.contender import begin, note
from workbench.choices.data.order import RowOrder
from workbench.choices.data.prepare import prepare
from workbench.choices.data.tokens import Batch
from workbench.ops.timing import clock_of, processor_seconds, wait_for
from workbench.telemetry.streams import TelemetryWriter
from workbench.training.assemble import assemble
from workbench.training.loop import Training
from workbench.training.recorder import NotFinite
from workbench.training.warmup import compile_ahead

SAMPLE_SECONDS = 0.002


class GroupedRows(RowOrder):
    """Lay out the same rows (B, T) as transformers' ``run_mlm`` does, each as one piece.

    Attention crosses documents and positions count along the row.
    """

    def batch(self, samples: np.ndarray) -> Batch:
        """See :meth:`RowOrder.batch`; positions 0 .. T - 1 and piece 0 everywhere."""
        batch = super().batch(samples)
        positions_BT = torch.arange(batch.tokens_BT.shape[1]).expand_as(batch.tokens_BT).contiguous()
        return batch._replace(positions_BT=positions_BT, documents_BT=torch.zeros_like(batch.documents_BT))


class PeakMemory:
    """Bytes that a process (or its GPU) holds at most while the context is open, beyond what it held before."""

    def __init__(self, device: torch.device) -> None:
        self._device, self._sampled = device, 0
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
        self.stop()

    def stop(self) -> None:
        """Watch no longer."""
        self._done.set()
        self._thread.join()

    @property
    def grown(self) -> int:
        """Return the growth so far, in bytes."""
        return torch.cuda.max_memory_allocated(self._device) if self._device.type == "cuda" else self._sampled

    def _watch(self) -> None:
        # Sampled: not every system lets its own high-water mark be set back to where the model begins.
        while not self._done.wait(SAMPLE_SECONDS):
            self._sampled = max(self._sampled, self._process.memory_info().rss - self._before)


def load_what_all_need() -> None:
    """Load what the first product of a process and its first optimizer need, or it counts as memory of the model."""
    (torch.randn(64, 64, requires_grad=True) @ torch.randn(64, 64)).sum().backward()
    load(COMPILER)


def timed_steps(training: Training, steps: int) -> dict[str, Any]:
    """Take ``steps`` steps.

    Returns:
        ``seconds`` (see :func:`~workbench.ops.timing.clock_of`) and ``wall_seconds`` of every step, and the ``stages``
        that the model was in; ``tokens`` and useful ``flops`` of all of them.
    """
    clock = clock_of(training.device)
    answer: dict[str, Any] = {"seconds": [], "wall_seconds": [], "stages": []}
    tokens, flops = training.progress.tokens, training.recorder.useful_flops
    for _ in range(steps):
        wall, own = time.perf_counter(), clock()
        # Only the cost of a step counts here: a squeezed schedule may well be too steep to train on.
        with contextlib.suppress(NotFinite):
            training.step()
        wait_for(training.device)
        answer["seconds"].append(clock() - own)
        answer["wall_seconds"].append(time.perf_counter() - wall)
        answer["stages"].append(training.assembled.stage)
    return answer | {"tokens": training.progress.tokens - tokens, "flops": training.recorder.useful_flops - flops}


def timed_round(training: Training, steps: int) -> dict[str, Any]:
    """Take ``steps`` steps as a run does, which waits for the device at the end only.

    Returns:
        wall ``seconds``, ``tokens`` and useful ``flops`` of all of them, and their ``losses`` in nats.
    """
    # Of all steps, where a run keeps those of the last fifty.
    losses: deque[float] = deque(maxlen=steps)
    training.recorder.recent = losses
    tokens, flops, began = training.progress.tokens, training.recorder.useful_flops, time.perf_counter()
    for _ in range(steps):
        training.step()
    training.settle()
    return {
        "seconds": time.perf_counter() - began,
        "tokens": training.progress.tokens - tokens,
        "flops": training.recorder.useful_flops - flops,
        "losses": list(losses),
    }


def main() -> None:
    """Child process: ``python -m workbench.bench.timed_trainer '{"name": ..., "recipe": ...}'``.

    Settings beside these: ``memory``: ``memory_bytes``, the growth so far, stands in every answer. ``warmup``: a number
    of steps, after which rounds are timed as a whole, telemetry included; their losses are told, and memory is watched
    during the warm-up alone. ``grouped``: rows are one piece each, as ``run_mlm`` has them.
    """
    stage, setting, recipe = begin()
    prepared = prepare(recipe.data)
    engine = recipe.engine().calibrated(note)
    load_what_all_need()
    whole = "warmup" in setting
    with contextlib.ExitStack() as stack:
        memory = stack.enter_context(PeakMemory(engine.device)) if setting.get("memory") else None
        writer = TelemetryWriter(Path(stack.enter_context(tempfile.TemporaryDirectory()))) if whole else None
        assembled = assemble(recipe, prepared, engine)
        if setting.get("grouped"):
            assembled.order = GroupedRows(prepared.train, recipe.data.longest, recipe.seed)
        training = Training(recipe, assembled, writer)
        stack.callback(training.close)
        ready = {
            "parameters": training.assembled.parameters, "attention": engine.attention,
            "threads": torch.get_num_threads(), **_compiled(training),
        }  # fmt: skip
        if whole:
            ready |= {"warmup": timed_round(training, setting["warmup"])}
            if memory is not None:
                ready["memory_bytes"] = memory.grown
                # The thread that watches would take its share of every round.
                memory.stop()

        def answer(message: dict[str, Any]) -> dict[str, Any]:
            found = (timed_round if whole else timed_steps)(training, message["steps"])
            return found | ({"memory_bytes": memory.grown} if memory and not whole else {})

        stage.serve(ready, answer)


def _compiled(training: Training) -> dict[str, float]:
    """Return CPU and wall seconds of compiling ahead; zeros where nothing is compiled."""
    if not training.engine.compiled:
        return {"compile_seconds": 0.0, "compile_wall_seconds": 0.0}
    wall, before = time.perf_counter(), processor_seconds()
    compile_ahead(training)
    return {"compile_seconds": processor_seconds() - before, "compile_wall_seconds": time.perf_counter() - wall}


if __name__ == "__main__":
    main()
