"""Learning rate and warm-up of every preset, from a small sweep at the preset's own budget.

One coordinate after the other: the rate on a grid of factors of two, extended while the best one is at its end; then
the warm-up at that rate, and twice the longest where that one won; then, where another warm-up won, the rates above
while they pay. All on a seed that no result is reported on. What does not depend on each other may be trained side by
side.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from workbench.bench.contender import Contender
from workbench.bench.result import ResultsFile
from workbench.recipes import presets
from workbench.recipes.recipe import Recipe

RESULTS = Path("docs/results/presets.json")
WORKER = "workbench.bench.tuning_worker"
TUNING_SEED = 100
FACTORS = (0.5, 1.0, 2.0)
"""On the learning rate, tried first."""
EXTENSIONS = 2
"""Factors tried beyond these, while the best one is at an end of them."""
WARMUPS = (0.05, 0.1, 0.2)
"""Shares of the budget."""


def main(argv: list[str]) -> int:
    """``workbench bench presets [NAME ...]``: sweep, show every reading, keep it in one file; resumable."""
    parser = argparse.ArgumentParser(prog="workbench bench presets", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="presets to sweep; those of `fast`'s size when empty")
    parser.add_argument("--out", type=Path, default=RESULTS, help="results file (%(default)s)")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="a knob of all of them")
    options = parser.parse_args(argv)
    names = options.names or [name for name in presets.names() if _small(presets.get(name))]
    results = ResultsFile(options.out, "presets")
    with results.own():
        results.put(seed=TUNING_SEED)
        for name in names:
            recipe = presets.get(name).with_assignments(options.set).with_(seed=TUNING_SEED, execution={"threads": 1})
            with Contender(WORKER, {"name": name, "recipe": recipe.to_dict()}) as child:
                results.put(unigram_entropy=child.ready["unigram_entropy"])
                best, loss = sweep(recipe, partial(trained_losses, name, results, child))
            print(
                f"{name}: best lr {best.optimizer.lr:g}, warm-up {_warmup(best)}, held-out loss {loss:.4f}", flush=True
            )
    return 0


def sweep(recipe: Recipe, losses_of: Callable[[Sequence[Recipe]], Sequence[float]]) -> tuple[Recipe, float]:
    """The recipe with the learning rate and warm-up of least loss.

    Args:
        recipe: where the search begins; its optimizer's ``schedule`` may have no ``warmup``, which then stays out.
        losses_of: trains several and gives their held-out nats, infinite where one diverged.

    Returns:
        the best recipe tried, and its loss.
    """
    tried: list[tuple[float, Recipe]] = []

    def losses_at(*candidates: Recipe) -> Sequence[float]:
        losses = losses_of(candidates)
        tried.extend(zip(losses, candidates, strict=True))
        return losses

    def best() -> tuple[float, Recipe]:
        return min(tried, key=lambda found: found[0])

    start = recipe.optimizer.lr
    losses = dict(zip(FACTORS, losses_at(*(_at(recipe, start * factor) for factor in FACTORS)), strict=True))
    for _ in range(EXTENSIONS):
        factor = min(losses, key=losses.__getitem__)
        if factor not in (min(losses), max(losses)):
            break
        # min() of equals is the first: when all diverged, that is the lowest rate, and the search goes down.
        further = factor / 2 if factor == min(losses) else factor * 2
        (losses[further],) = losses_at(_at(recipe, start * further))
    loss, found = best()
    own = _warmup(found)
    if own is not None and math.isfinite(loss):
        losses_at(*(found.with_(**{"optimizer.schedule.warmup": share}) for share in WARMUPS if share != own))
        if _warmup(best()[1]) == WARMUPS[-1]:
            losses_at(found.with_(**{"optimizer.schedule.warmup": 2 * WARMUPS[-1]}))
        # Another warm-up may bear a higher rate: for as long as that pays.
        for _ in range(1 + EXTENSIONS):
            before, found = found, best()[1]
            if found is before:
                break
            losses_at(_at(found, found.optimizer.lr * 2))
    loss, found = best()
    return found, loss


def _at(recipe: Recipe, lr: float) -> Recipe:
    return recipe.with_(optimizer={"lr": float(f"{lr:.6g}")})


def _warmup(recipe: Recipe) -> float | None:
    found: float | None = getattr(recipe.optimizer.schedule, "warmup", None)
    return found


def trained_losses(name: str, results: ResultsFile, child: Contender, recipes: Sequence[Recipe]) -> list[float]:
    """Held-out nats at the end of each recipe's budget, trained by a child unless the results have it."""
    return [_trained_loss(name, results, child, recipe) for recipe in recipes]


def _trained_loss(name: str, results: ResultsFile, child: Contender, recipe: Recipe) -> float:
    key = f"{name}/lr={recipe.optimizer.lr:g}/warmup={_warmup(recipe)}"
    run = results.known(key, recipe)
    if run is None:
        run = {"budget": str(recipe.budget), **child.ask({"recipe": recipe.to_dict()})}
        results.add(key, recipe, run)
        print(f"{key}: {nats_of(run):.4f} ({run['steps']} steps, {run['wall_seconds']:.0f} s)", flush=True)
    return nats_of(run)


def nats_of(run: Mapping[str, Any]) -> float:
    """Held-out loss of a worker's run; infinity for one that diverged."""
    return math.inf if run["loss"] is None else float(run["loss"])


def seconds_of(run: Mapping[str, Any]) -> float:
    """Return the seconds of training without compilation: processor time on a CPU, wall time on a GPU."""
    return float(run["wall_seconds" if run.get("device") == "cuda" else "cpu_seconds"])


def _small(recipe: Recipe) -> bool:
    """Return True if a sweep takes minutes on one core: a small vocabulary, and a budget not in seconds."""
    return recipe.data.tokenizer.asked_size() <= 4096 and recipe.budget.unit != "seconds"
