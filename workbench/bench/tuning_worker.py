"""A child process that trains whole runs of one recipe family, one after another, and says how each ended."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from workbench.bench.contender import begin
from workbench.choices.data.prepare import prepare
from workbench.choices.data.tokens import PreparedData
from workbench.choices.objectives.text_baselines import text_baselines
from workbench.recipes.recipe import Recipe
from workbench.training.assemble import assemble, heldout_set
from workbench.training.evaluate import evaluate
from workbench.training.loop import Training
from workbench.training.recorder import NotFinite
from workbench.training.restored import take_weights
from workbench.training.warmup import compile_ahead


def train(recipe: Recipe, prepared: PreparedData, initial: str = "") -> dict[str, Any]:
    """Train a recipe to the end of its budget and evaluate it once, as a run's own process would.

    Args:
        initial: the checkpoint whose weights it begins with; empty for those of its seed.

    Returns:
        ``loss`` (held-out, nats; None when the run diverged), ``evaluated_tokens``, ``steps``, ``tokens``, ``device``,
        ``compile_seconds``, ``cpu_seconds`` and ``wall_seconds`` of training, ``flops`` (useful ones).
    """
    assembled = assemble(recipe, prepared)
    if initial:
        take_weights(assembled.model, Path(initial))
    training = Training(recipe, assembled)
    answer: dict[str, Any] = {"loss": None, "compile_seconds": round(compile_ahead(training), 2)}
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        while not training.progress.done:
            training.step()
        training.settle()
    except NotFinite as error:
        answer["diverged"] = str(error)
    answer |= {
        "steps": training.progress.step,
        "tokens": training.progress.tokens,
        "device": assembled.engine.device.type,
        "cpu_seconds": round(time.process_time() - cpu, 2),
        "wall_seconds": round(time.perf_counter() - wall, 2),
        "flops": training.recorder.useful_flops,
    }
    training.close()
    if "diverged" not in answer:
        result = evaluate(recipe, assembled, assembled.heldout)
        answer |= {"loss": result.loss, "evaluated_tokens": result.tokens}
        # Finite to the end of training, and yet weights that were broken by the last step.
        if not math.isfinite(result.loss):
            answer |= {"loss": None, "diverged": f"held-out loss {result.loss}"}
    return answer


def serve(answer: Callable[[Recipe, PreparedData, dict[str, Any]], dict[str, Any]]) -> None:
    """Serve as the child: say the floors of its text, then answer each recipe with what its training came to.

    Args:
        answer: trains one whole run; it gets the recipe, its data and the child's setting.
    """
    stage, setting, recipe = begin()
    prepared = prepare(recipe.data)
    floors = text_baselines(prepared, heldout_set(recipe, prepared), say=print)

    def whole_run(message: dict[str, Any]) -> dict[str, Any]:
        # Guards of graphs of a deleted model would be tried, and counted, without end.
        torch.compiler.reset()
        return answer(Recipe(**message["recipe"]), prepared, setting)

    stage.serve({"unigram_entropy": floors.unigram, "bigram_entropy": floors.neighbours}, whole_run)


def main() -> None:
    """Child process: ``python -m workbench.bench.tuning_worker '{"recipe": ..., "name": ...}'``."""
    serve(lambda recipe, prepared, setting: train(recipe, prepared, setting.get("initial", "")))


if __name__ == "__main__":
    main()
