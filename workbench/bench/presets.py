"""Learning rate and warm-up of every preset, from a small sweep at the preset's own budget.

One coordinate after the other: the rate on a grid of factors of two, extended while the best one is at its end; then
the warm-up at that rate; then, where another warm-up won, the rate above. All on a seed that no result is reported on.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from workbench import presets
from workbench.bench.contender import Contender
from workbench.bench.result import hardware, revision, versions
from workbench.bench.study import WORKER, best_factor
from workbench.bench.study_results import StudyResults, definition
from workbench.recipe import Recipe

RESULTS = Path("docs/results/presets.json")
TUNING_SEED = 100
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
    results = StudyResults(options.out, benchmark="presets")
    with results.own():
        results.put(hardware=hardware(), versions=versions(), revision=revision(), seed=TUNING_SEED)
        for name in names:
            recipe = presets.get(name).with_assignments(options.set).with_(seed=TUNING_SEED, execution={"threads": 1})
            with tempfile.TemporaryDirectory() as logs:
                child = Contender(WORKER, {"name": name, "recipe": recipe.to_dict()}, Path(logs) / "worker.log")
                try:
                    results.put(unigram_entropy=child.ready["unigram_entropy"])
                    best, loss = sweep(recipe, partial(_loss, name, results, child))
                finally:
                    child.kill()
            print(
                f"{name}: best lr {best.optimizer.lr:g}, warm-up {_warmup(best)}, held-out loss {loss:.4f}", flush=True
            )
    return 0


def sweep(recipe: Recipe, loss_of: Callable[[Recipe], float]) -> tuple[Recipe, float]:
    """The recipe with the learning rate and warm-up of least loss.

    Args:
        recipe: where the search begins; its optimizer's ``schedule`` may have no ``warmup``, which then stays out.
        loss_of: held-out loss of a recipe in nats, infinite where it diverged.

    Returns:
        the best recipe tried, and its loss.
    """
    losses: dict[tuple[float, float | None], tuple[float, Recipe]] = {}

    def tried(candidate: Recipe) -> float:
        loss = loss_of(candidate)
        losses[candidate.optimizer.lr, _warmup(candidate)] = (loss, candidate)
        return loss

    start = recipe.optimizer.lr
    best_factor(lambda factor: tried(_at(recipe, start * factor)))
    loss, best = min(losses.values(), key=lambda found: found[0])
    own = _warmup(best)
    if own is not None and math.isfinite(loss):
        for share in WARMUPS:
            if share != own:
                tried(best.with_(**{"optimizer.schedule.warmup": share}))
        loss, best = min(losses.values(), key=lambda found: found[0])
        if _warmup(best) != own:
            tried(_at(best, best.optimizer.lr * 2))
    loss, best = min(losses.values(), key=lambda found: found[0])
    return best, loss


def _at(recipe: Recipe, lr: float) -> Recipe:
    return recipe.with_(optimizer={"lr": float(f"{lr:.6g}")})


def _warmup(recipe: Recipe) -> float | None:
    found: float | None = getattr(recipe.optimizer.schedule, "warmup", None)
    return found


def _loss(name: str, results: StudyResults, child: Contender, recipe: Recipe) -> float:
    key = f"{name}/lr={recipe.optimizer.lr:g}/warmup={_warmup(recipe)}"
    known = results.loss(key, definition(recipe))
    if known is None:
        answer: dict[str, Any] = child.ask({"recipe": recipe.to_dict()})
        results.add(key, {"arm": name, "definition": definition(recipe), "budget": str(recipe.budget), **answer})
        known = math.inf if answer["loss"] is None else float(answer["loss"])
        print(f"{key}: {known:.4f} ({answer['steps']} steps, {answer['wall_seconds']:.0f} s)", flush=True)
    return known


def _small(recipe: Recipe) -> bool:
    """Whether a sweep takes minutes on one core: a small vocabulary, and a budget that a busy moment does not cut."""
    return recipe.data.tokenizer.asked_size() <= 4096 and recipe.budget.unit != "seconds"
