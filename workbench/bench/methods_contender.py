"""A method as a contender of speed: its whole schedule squeezed into a few steps, timed step by step.

What a method costs changes along its run: layers appear, freeze, are dropped more often, batches grow. So a contender
trains a short run from beginning to end, with a budget that holds as many steps as will be timed, and every stage is
met in order and in its due share. Nothing of a method is known here.
"""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Any

import torch

from workbench.bench.child import begin
from workbench.bench.contender import Stage
from workbench.choices.data.prepare import prepare
from workbench.training.assemble import assemble
from workbench.training.loop import Training
from workbench.training.recorder import NotFinite
from workbench.training.warmup import compile_ahead


def timed_steps(training: Training, steps: int) -> dict[str, Any]:
    """Take ``steps`` steps.

    Returns:
        ``wall_seconds`` and ``cpu_seconds`` of every step, and the ``stages`` that the model was in; ``tokens`` and
        useful ``flops`` of all of them.
    """
    walls, cpus, stages = [], [], []
    tokens, flops = training.progress.tokens, training.recorder.useful_flops
    for _ in range(steps):
        wall, cpu = time.perf_counter(), time.process_time()
        # Only what a step costs is asked here: a squeezed schedule may well be too steep to train on.
        with contextlib.suppress(NotFinite):
            training.step()
        if training.device.type == "cuda":
            torch.cuda.synchronize(training.device)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
        stages.append(training.assembled.stage)
    return {
        "wall_seconds": walls,
        "cpu_seconds": cpus,
        "stages": stages,
        "tokens": training.progress.tokens - tokens,
        "flops": training.recorder.useful_flops - flops,
    }


def main() -> None:
    """Child process: ``python -m workbench.bench.methods_contender '{"recipe": ..., "name": ...}'``."""
    _, recipe = begin()
    stage = Stage()
    prepared = prepare(recipe.data, say=lambda line: print(line, file=sys.stderr))
    assembled = assemble(recipe, prepared, recipe.execution.resolve_device())
    training = Training(recipe, assembled)
    seconds = compile_ahead(training)
    ready = {"parameters": assembled.parameters, "attention": assembled.attention, "compile_seconds": seconds}
    stage.say({"ready": ready})
    while (steps := stage.next_steps()) is not None:
        stage.say(timed_steps(training, steps))
    training.close()


if __name__ == "__main__":
    main()
