"""A benchmark takes the model of a run and returns scores by name; registered ones are found by their name."""

from __future__ import annotations

from difflib import get_close_matches

from workbench.base.errors import RunError
from workbench.recipes.recipe import Recipe
from workbench.store.evaluations import Measured, add_scores
from workbench.store.folder import RunFolder
from workbench.training.assemble import TrainedModel
from workbench.training.restored import restore


class Benchmark:
    """Base of the benchmarks: one class, one file, one import line in this package.

    Attributes:
        name: what ``--on`` takes.
        summary: one line of what it measures.
    """

    name: str
    summary: str = ""

    def measure(self, recipe: Recipe, trained: TrainedModel) -> dict[str, Measured]:
        """Return the scores of a model by name; each name begins with the benchmark's.

        Args:
            recipe: as the run was launched.
            trained: model, vocabulary and engine; the model is in evaluation mode.
        """
        raise NotImplementedError


_BENCHMARKS: dict[str, Benchmark] = {}


def register(benchmark: Benchmark) -> Benchmark:
    """Make a benchmark known by its name; returns it."""
    _BENCHMARKS[benchmark.name] = benchmark
    return benchmark


def benchmark_named(name: str) -> Benchmark:
    """Return a registered benchmark.

    Raises:
        RunError: there is none of this name; lists those that there are.
    """
    if name not in _BENCHMARKS:
        near = get_close_matches(name, _BENCHMARKS, 1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise RunError(f"no benchmark '{name}'; there are: {', '.join(sorted(_BENCHMARKS)) or 'none'}{hint}")
    return _BENCHMARKS[name]


def score(folder: RunFolder, on: str, step: int | None = None) -> dict[str, Measured]:
    """Score a checkpoint of a run on a benchmark and keep the scores in the run.

    Args:
        on: name of the benchmark. step: of the checkpoint; None for the newest good one.

    Returns:
        The scores by name.

    Raises:
        RunError: no such benchmark, run or checkpoint.
        CheckpointError: the checkpoint is damaged.
    """
    benchmark = benchmark_named(on)
    recipe, trained, saved = restore(folder, step)
    trained.model.eval()
    scores = benchmark.measure(recipe, trained)
    add_scores(folder, saved.step, int(saved.meta["tokens"]), float(saved.meta["seconds"]), scores)
    return scores
