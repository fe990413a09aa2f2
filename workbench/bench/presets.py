"""Learning rate and warm-up of every preset, from a small sweep at the preset's own budget.

One coordinate after the other: the rate on a grid of factors of two, extended while the best one is at its end; then
the warm-up at that rate, and twice the longest where that one won; then, where another warm-up won, the rates above
while they pay. All on a seed that no result is reported on. What does not depend on each other may be trained side by
side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from workbench.bench.contender import Contender, note
from workbench.bench.result import ResultsFile
from workbench.bench.table import Options
from workbench.recipes import presets
from workbench.recipes.recipe import Recipe

WORKER = "workbench.bench.tuning_worker"
TUNING_SEED = 100
FACTORS = (0.5, 1.0, 2.0)
"""On the learning rate, tried first."""
EXTENSIONS = 2
"""Factors tried beyond these, while the best one is at an end of them."""
WARMUPS = (0.05, 0.1, 0.2)
"""Shares of the budget."""


def measured(options: Options) -> dict[str, Any]:
    """Return sweep the presets that are named, and keep every reading and the best of each."""
    results, best = options.results, dict(options.results.data.get("best", {}))
    with results.own():
        results.put(seed=TUNING_SEED)
        for name in options.names or [name for name in presets.names() if _small(presets.get(name))]:
            recipe = presets.get(name).with_assignments(options.set).with_(seed=TUNING_SEED, execution={"threads": 1})
            with Contender(WORKER, {"name": name, "recipe": recipe.to_dict()}) as child:
                results.put(unigram_entropy=child.ready["unigram_entropy"])
                found, loss = sweep(recipe, partial(trained_losses, name, results, child))
            best[name] = {"lr": found.optimizer.lr, "warmup": _warmup(found), "loss": loss}
            results.put(best=best)
    return {"best": best}


def best_rate(
    recipe: Recipe, rates: Sequence[float], losses_of: Callable[[Sequence[Recipe]], Sequence[float]]
) -> dict[float, float]:
    """Return the losses by learning rate: of these rates, and a factor of 2 beyond while the best is at an end."""
    losses = dict(zip(rates, losses_of([_at(recipe, rate) for rate in rates]), strict=True))
    for _ in range(EXTENSIONS):
        # min() of equals is the first: when all diverged, that is the lowest rate, and the search goes down.
        best = min(losses, key=losses.__getitem__)
        if best not in (min(losses), max(losses)):
            break
        further = best / 2 if best == min(losses) else best * 2
        (losses[further],) = losses_of([_at(recipe, further)])
    return losses


def sweep(recipe: Recipe, losses_of: Callable[[Sequence[Recipe]], Sequence[float]]) -> tuple[Recipe, float]:
    """Return the recipe with the learning rate and warm-up of least loss.

    Args:
        recipe: where the search begins; its optimizer's ``schedule`` may have no ``warmup``, which then stays out.
        losses_of: trains several and gives their held-out nats, infinite where one diverged.

    Returns:
        the best recipe tried, and its loss.
    """
    tried: list[tuple[float, Recipe]] = []

    def losses_at(candidates: Sequence[Recipe]) -> Sequence[float]:
        losses = losses_of(candidates)
        tried.extend(zip(losses, candidates, strict=True))
        return losses

    def best() -> tuple[float, Recipe]:
        return min(tried, key=lambda found: found[0])

    best_rate(recipe, [recipe.optimizer.lr * factor for factor in FACTORS], losses_at)
    loss, found = best()
    own = _warmup(found)
    if own is not None and math.isfinite(loss):
        losses_at([found.with_(**{"optimizer.schedule.warmup": share}) for share in WARMUPS if share != own])
        if _warmup(best()[1]) == WARMUPS[-1]:
            losses_at([found.with_(**{"optimizer.schedule.warmup": 2 * WARMUPS[-1]})])
        # Another warm-up may bear a higher rate: for as long as that pays.
        for _ in range(1 + EXTENSIONS):
            before, found = found, best()[1]
            if found is before:
                break
            losses_at([_at(found, found.optimizer.lr * 2)])
    loss, found = best()
    return found, loss


def _at(recipe: Recipe, lr: float) -> Recipe:
    return recipe.with_(optimizer={"lr": float(f"{lr:.6g}")})


def _warmup(recipe: Recipe) -> float | None:
    found: float | None = getattr(recipe.optimizer.schedule, "warmup", None)
    return found


def trained(
    key: str, recipe: Recipe, results: ResultsFile, ask: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """Return the outcome of a whole run: as the results have it, else trained by a child, which ``ask`` asks."""
    run = results.known(key, recipe)
    if run is None:
        run = {"budget": str(recipe.budget), **ask({"recipe": recipe.to_dict()})}
        results.add(key, recipe, run)
        note(f"{key}: {nats_of(run):.4f} nats, {run['steps']} steps, {seconds_of(run):.1f} s")
    return run


def trained_losses(name: str, results: ResultsFile, child: Contender, recipes: Sequence[Recipe]) -> list[float]:
    """Return held-out nats at the end of each recipe's budget."""
    keys = [f"{name}/lr={recipe.optimizer.lr:g}/warmup={_warmup(recipe)}" for recipe in recipes]
    return [nats_of(trained(key, recipe, results, child.ask)) for key, recipe in zip(keys, recipes, strict=True)]


def nats_of(run: Mapping[str, Any]) -> float:
    """Return held-out loss of a worker's run; infinity for one that diverged."""
    return math.inf if run["loss"] is None else float(run["loss"])


def seconds_of(run: Mapping[str, Any]) -> float:
    """Return the seconds of training without compilation: processor time on a CPU, wall time on a GPU."""
    return float(run["wall_seconds" if run.get("device") == "cuda" else "cpu_seconds"])


def _small(recipe: Recipe) -> bool:
    """Return True if a sweep takes minutes on one core: a small vocabulary, and a budget not in seconds."""
    return recipe.data.tokenizer.asked_size() <= 4096 and recipe.budget.unit != "seconds"
