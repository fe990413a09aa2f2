"""Ourselves as a contender: the real training loop, data pipeline and telemetry, as a run's process uses them."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import torch

from workbench.bench.contender import begin
from workbench.choices.data.prepare import prepare
from workbench.telemetry import TelemetryWriter
from workbench.training.assemble import assemble
from workbench.training.loop import Training
from workbench.training.warmup import compile_ahead


def main() -> None:
    """Child process: ``python -m workbench.bench.peer_workbench '{"recipe": ..., "warmup": ..., ...}'``."""
    stage, setting, recipe = begin()
    assembled = assemble(recipe, prepare(recipe.data))
    with tempfile.TemporaryDirectory() as folder:
        training = Training(recipe, assembled, TelemetryWriter(Path(folder)))
        start = time.perf_counter()
        compile_ahead(training)
        for _ in range(setting["warmup"]):
            training.step()
        training.settle()
        ready = {
            "parameters": assembled.parameters, "attention": training.engine.attention,
            "threads": torch.get_num_threads(), "warmup_seconds": time.perf_counter() - start,
        }  # fmt: skip
        stage.say({"ready": ready})
        while (steps := stage.next_steps()) is not None:
            start, tokens = time.perf_counter(), training.progress.tokens
            for _ in range(steps):
                training.step()
            # Before the clock is read: work still under way on a GPU belongs to this round.
            training.settle()
            stage.say({"seconds": time.perf_counter() - start, "tokens": training.progress.tokens - tokens})
        training.close()


if __name__ == "__main__":
    main()
