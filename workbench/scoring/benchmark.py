"""A benchmark takes the model of a run and returns scores by name; registered ones are found by their name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workbench.base.errors import RunError, check_known
from workbench.base.plugins import load_plugins
from workbench.base.text import many
from workbench.models.export import run_tokenizer
from workbench.recipes.recipe import Recipe
from workbench.scoring.evaluation_files import Source, items
from workbench.scoring.reader import Reader
from workbench.scoring.training_text import Overlap, TrainingText
from workbench.store.evaluations import Measured, add_scores, is_part
from workbench.store.folder import RunFolder, read_object
from workbench.training.assemble import TrainedModel, build_model
from workbench.training.restored import restore

FAST = ("blimp", "blimp_supplement", "lambada", "arc_easy", "piqa", "copa")
"""Benchmarks of the set ``fast``."""


class Size(NamedTuple):
    """Set how much of a benchmark is measured: the first so many of it; None for all.

    Attributes:
        pairs: of each paradigm of minimal pairs. questions: of a benchmark of single items.
    """

    pairs: int | None = None
    questions: int | None = None


WHOLE, FAST_SIZE = Size(), Size(50, 100)
UNTRAINED = {WHOLE: Size(50, 500), FAST_SIZE: Size(10, 100)}
"""Size for the untrained model, which is at chance whatever it is asked."""

Tell = Callable[[str, float], None]
"""Takes what is measured, and the share that is done."""


def silent(doing: str, share: float) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Subject:
    """A model that is measured, and what belongs to it.

    Attributes:
        recipe: as the run was launched.
        trained: model, vocabulary and engine; the model is in evaluation mode.
        reader: of this model.
        data: folder with the items of benchmarks; None for ``$WORKBENCH_EVAL``, else the Hub.
        size: how much is measured.
        counts_V: occurrences of each id in the training text; None where that is gone.
        tell: called with the share that is done.
        read: items by benchmark, read once for all that is asked about them.
    """

    recipe: Recipe
    trained: TrainedModel
    reader: Reader
    data: Path | None = None
    size: Size = WHOLE
    counts_V: np.ndarray | None = None
    tell: Callable[[float], None] = lambda share: None
    read: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def items(self, name: str, source: Source) -> list[dict[str, Any]]:
        """Return the items of a benchmark; see :func:`workbench.scoring.evaluation_files.items`."""
        if name not in self.read:
            self.read[name] = items(name, source, self.data)
        return self.read[name]

    def untrained(self) -> Subject:
        """Return the same with fresh weights: the recipe's own, at its seed, in the stage of the trained model."""
        model = build_model(self.recipe, self.trained.architecture, self.trained.vocabulary, self.trained.engine)
        trained = replace(self.trained, model=model)
        reader = Reader(trained, self.reader.tokenizer, self.recipe.architecture.layers)
        return replace(self, trained=trained, reader=reader, size=UNTRAINED[self.size])


class Benchmark:
    """Base of the benchmarks: one class, one file, one import line in this package.

    Attributes:
        name: what ``--on`` takes.
        summary: one line of what it measures.
    """

    name: str
    summary: str

    def measure(self, subject: Subject) -> dict[str, Measured]:
        """Return the scores of a model by name; each name begins with the benchmark's.

        Raises:
            DataError: its items are not to be had.
        """
        raise NotImplementedError

    def texts(self, subject: Subject) -> list[str]:
        """Return the texts of the items that are measured; they are looked for in the training text."""
        return []


_BENCHMARKS: dict[str, Benchmark] = {}


def register(benchmark: Benchmark) -> Benchmark:
    """Make a benchmark known by its name; returns it."""
    _BENCHMARKS[benchmark.name] = benchmark
    return benchmark


def benchmarks() -> Mapping[str, Benchmark]:
    """Return the registered benchmarks by name, those of other packages included."""
    load_plugins("workbench.benchmarks")
    return _BENCHMARKS


def benchmark_named(name: str) -> Benchmark:
    """Return a registered benchmark.

    Raises:
        RunError: there is none of this name; lists those that there are.
    """
    check_known("benchmark", name, {*benchmarks(), "fast"}, RunError)
    return _BENCHMARKS[name]


def score(
    folder: RunFolder,
    on: str | Sequence[str],
    step: int | None = None,
    *,
    fast: bool = False,
    data: Path | None = None,
    tell: Tell = silent,
) -> dict[str, Measured]:
    """Score a checkpoint of a run on benchmarks and keep the scores in the run, each as soon as it is there.

    Beside each score stands that of the same model untrained. Texts that share 13 words in a row with the training text
    are counted in the score's note.

    Args:
        on: names of benchmarks; ``fast`` stands for all of ours, with ``fast`` below.
        step: of the checkpoint; None for the newest good one.
        fast: the first 50 items of each group alone; these scores have names of their own, ``blimp_fast``.
        data: folder with the items; None for ``$WORKBENCH_EVAL``, else the Hugging Face Hub.

    Returns:
        The scores by name.

    Raises:
        RunError: no such benchmark, run or checkpoint.
        DataError: the items of a benchmark are not to be had.
        CheckpointError: the checkpoint is damaged.
    """
    asked = [on] if isinstance(on, str) else list(on)
    if "fast" in asked:
        asked, fast = [*FAST, *(name for name in asked if name not in (*FAST, "fast"))], True
    named = [benchmark_named(name) for name in asked]
    engine = Recipe.load(folder.recipe).engine().resume(read_object(folder.environment))
    recipe, trained, saved = restore(folder, step, engine)
    reader = Reader(trained, run_tokenizer(folder), recipe.architecture.layers)
    text = TrainingText(folder, recipe)
    subject = Subject(recipe, trained, reader, data, FAST_SIZE if fast else WHOLE, text.counts_V)
    texts = {benchmark.name: benchmark.texts(subject) for benchmark in named}
    overlaps = text.overlaps(texts, lambda: tell("looking for the benchmarks' texts in the training text", 0.0))
    found: dict[str, Measured] = {}
    for benchmark in named:
        scores = _measured(benchmark, subject, overlaps.get(benchmark.name), tell)
        add_scores(folder, saved.step, int(saved.meta["tokens"]), float(saved.meta["seconds"]), scores)
        found |= scores
    return found


def _measured(benchmark: Benchmark, subject: Subject, overlap: Overlap | None, tell: Tell) -> dict[str, Measured]:
    """Return the scores of one benchmark, with those of the untrained model beside them."""
    name, fast = benchmark.name, subject.size == FAST_SIZE
    scores = benchmark.measure(replace(subject, tell=lambda share: tell(name, share)))
    fresh = benchmark.measure(replace(subject.untrained(), tell=lambda share: tell(f"{name}, untrained", share)))
    return {_called(each, name, fast): _beside(each, score, fresh.get(each), overlap) for each, score in scores.items()}


def _called(name: str, benchmark: str, fast: bool) -> str:
    """Return the name under which a score is kept: scores of a few items do not stand beside those of all."""
    return name.replace(benchmark, f"{benchmark}_fast", 1) if fast else name


def _beside(name: str, score: Measured, fresh: Measured | None, overlap: Overlap | None) -> Measured:
    parts = [score.note] if score.note else []
    beside = dict(score.beside)
    # A few items say nothing about a part.
    whole = not is_part(name)
    if fresh is not None and fresh.value is not None and (whole or fresh.count == score.count):
        beside = {"untrained": fresh.value, **beside}
        if whole and fresh.count < score.count:
            parts.append(f"untrained: the first {many(fresh.count, 'item')}")
    if overlap is not None and whole:
        parts.append(overlap.words)
    return replace(score, beside=beside, note="; ".join(parts))
