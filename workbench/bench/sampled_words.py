"""Measure a sampled softmax at a large vocabulary: CPU seconds per step in turns, then scores at equal time.

All arms train in one process and one thread, and seconds are that thread's own: neighbours on a shared machine take
turns with it and are not counted.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from workbench.bench.harness import Bench, Options, in_turn
from workbench.bench.result import spread
from workbench.bench.rounds import ratios
from workbench.choices.data.prepare import prepare
from workbench.recipes import presets
from workbench.recipes.recipe import Recipe
from workbench.training.assemble import assemble
from workbench.training.evaluate import evaluate
from workbench.training.loop import Training
from workbench.training.warmup import compile_ahead

WORDS = (0, 512, 4096)
"""Arms by the number of sampled words; 0 is the full softmax."""


def base(objective: str, vocabulary: int) -> Recipe:
    """:func:`~workbench.recipes.presets.fast` with another objective and a large vocabulary, on one thread."""
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
    taken: dict[int, list[float]] = {words: [] for words in WORDS}
    for number in range(rounds):
        for words in in_turn(WORDS, number):
            taken[words].append(_seconds(trainings[words], steps))
    for training in trainings.values():
        training.close()
    return {words: {"seconds": spread(times), "speed-up": ratios(taken[0], times)} for words, times in taken.items()}


def score(recipe: Recipe, words: int, steps: int, seed: int) -> float:
    """Return the held-out loss in nats, over all words, of a run of so many steps whose rate falls within them."""
    changed = recipe.with_(objective={"sampled_words": words}, budget=f"{steps} steps", seed=seed)
    return trained_loss(changed)


def trained_loss(recipe: Recipe) -> float:
    """Return the held-out loss in nats of a run in this process, to the end of its budget in steps or tokens."""
    assembled = assemble(recipe, prepare(recipe.data, say=lambda line: None))
    training = Training(recipe, assembled)
    compile_ahead(training)
    while not training.progress.done:
        training.step()
    training.settle()
    training.close()
    return evaluate(recipe, assembled, assembled.heldout).loss


def _training(recipe: Recipe) -> Training:
    return Training(recipe, assemble(recipe, prepare(recipe.data, say=lambda line: None)))


def _seconds(training: Training, steps: int) -> float:
    """CPU seconds of this thread per step, the median: a step that others' caches slow down does not count."""
    seconds = []
    for _ in range(steps):
        began = time.thread_time()
        training.step()
        seconds.append(time.thread_time() - began)
    return statistics.median(seconds)


def _measured(options: Options) -> dict[str, Any]:
    recipe = base(options.objective, options.vocabulary).with_assignments(options.set)
    found = speeds(recipe, options.rounds, options.steps)
    if options.train:
        for words, arm in found.items():
            steps = round(options.train * arm["speed-up"]["median"])
            arm["steps"], arm["losses"] = steps, [score(recipe, words, steps, seed) for seed in range(options.seeds)]
    return {"recipe": recipe.to_dict(), "arms": {str(words): arm for words, arm in found.items()}}


def _show(result: Mapping[str, Any], console: Console, _path: Path) -> None:
    table = Table("sampled words", "CPU seconds per step", "speed-up", "steps", "held-out nats by seed")
    for words, arm in result["arms"].items():
        nats = ", ".join(f"{loss:.3f}" for loss in arm.get("losses", ()))
        ratio = arm["speed-up"]
        seconds = f"{arm['seconds']['median']:.3f}"
        factor = f"{ratio['median']:.2f}x ({ratio['min']:.2f} to {ratio['max']:.2f})"
        table.add_row("all" if words == "0" else words, seconds, factor, str(arm.get("steps", "")), nats)
    console.print(table)


main = Bench(
    "sampled_words", __doc__, _measured, _show, rounds=7, steps=10,
    options={
        "--objective": {"default": "causal", "choices": ("causal", "masked")},
        "--vocabulary": {"type": int, "default": presets.BERT_VOCABULARY, "help": "words"},
        "--train": {"type": int, "default": 0, "help": "steps of the full softmax in the race; 0: no race"},
        "--seeds": {"type": int, "default": 1, "help": "of the race"},
        "--set": {"action": "append", "default": [], "metavar": "PATH=VALUE", "help": "change the recipe"},
    },
).main  # fmt: skip
