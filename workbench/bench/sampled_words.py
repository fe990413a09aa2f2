"""Measure a sampled softmax at a large vocabulary: CPU seconds per step in turns, then scores at equal time.

All arms train in one process and one thread, and seconds are that thread's own: neighbours on a shared machine take
turns with it and are not counted.
"""

from __future__ import annotations

import statistics
import time
from functools import partial
from typing import Any

from workbench.bench.result import spread
from workbench.bench.rounds import alternate, ratios
from workbench.bench.table import Options
from workbench.bench.tuning_worker import train
from workbench.choices.data.prepare import prepare
from workbench.recipes import presets
from workbench.recipes.recipe import Recipe
from workbench.training.assemble import assemble
from workbench.training.loop import Training
from workbench.training.warmup import compile_ahead

WORDS = (0, 512, 4096)
"""Arms by the number of sampled words; 0 is the full softmax."""


def base(objective: str, vocabulary: int) -> Recipe:
    """Return :func:`~workbench.recipes.presets.fast` with another objective and a large vocabulary, on one thread."""
    return presets.fast().with_(
        name="sampled_words",
        data={"tokenizer": {"vocabulary_size": vocabulary}},
        objective={"kind": objective},
        execution={"threads": 1},
    )


def speeds(recipe: Recipe, rounds: int, steps: int) -> dict[int, dict[str, Any]]:
    """Return ``seconds`` per step and ``speed-up`` beside the full softmax, each a spread over rounds, by arm."""
    trainings = {words: _training(recipe.with_(objective={"sampled_words": words})) for words in WORDS}
    for training in trainings.values():
        compile_ahead(training)
        _seconds(training, steps)
    taken = alternate({str(words): partial(_seconds, each, steps) for words, each in trainings.items()}, rounds)
    for training in trainings.values():
        training.close()
    return {
        int(words): {"seconds": spread(times), "speed-up": ratios(taken["0"], times)} for words, times in taken.items()
    }


def score(recipe: Recipe, words: int, steps: int, seed: int) -> float:
    """Return the held-out loss in nats, over all words, of a run of so many steps whose rate falls within them."""
    changed = recipe.with_(objective={"sampled_words": words}, budget=f"{steps} steps", seed=seed)
    return float(train(changed, prepare(recipe.data, say=lambda line: None))["loss"])


def _training(recipe: Recipe) -> Training:
    return Training(recipe, assemble(recipe, prepare(recipe.data, say=lambda line: None)))


def _seconds(training: Training, steps: int) -> float:
    """Return CPU seconds of this thread per step, the median: a step that others' caches slow down does not count."""
    seconds = []
    for _ in range(steps):
        began = time.thread_time()
        training.step()
        seconds.append(time.thread_time() - began)
    return statistics.median(seconds)


def measured(options: Options) -> dict[str, Any]:
    """Measure what the options ask for."""
    recipe = base(options.objective, options.vocabulary).with_assignments(options.set)
    found = speeds(recipe, options.rounds, options.steps)
    if options.train:
        for words, arm in found.items():
            steps = round(options.train * arm["speed-up"]["median"])
            arm["steps"], arm["losses"] = steps, [score(recipe, words, steps, seed) for seed in range(options.seeds)]
    return {"recipe": recipe.to_dict(), "arms": {str(words): arm for words, arm in found.items()}}
