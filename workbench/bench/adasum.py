"""Batches that grow, with gradients averaged and with AdaSum: the held-out loss after equally many tokens.

A batch of k times the rows takes k times fewer steps. AdaSum gives each k-th of it a worker of its own. The rate of
every arm is tuned alike, on a seed of its own. All of it trains in one process and thread: equal tokens need no clock.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from workbench.bench.harness import Bench, Options
from workbench.bench.sampled_words import trained_loss
from workbench.recipes.recipe import Recipe

TUNING_SEED = 1000


def base(optimizer: str, rows: int, tokens: int) -> Recipe:
    """Return a small causal model on the embedded corpus, with a batch of so many rows of 64 tokens."""
    return Recipe(
        name="adasum",
        data={"kind": "embedded", "tokenizer": {"kind": "trained", "vocabulary_size": 2048},
              "sequence_length": 64, "batch_size": rows},
        objective="causal",
        architecture={"kind": "pre_ln", "layers": 4, "width": 128, "heads": 4},
        optimizer={"kind": optimizer, "schedule": {"kind": "cosine", "warmup": 0.1}},
        execution={"kind": "native", "compile": False, "device": "cpu", "threads": 1},
        budget={"amount": tokens, "unit": "tokens"},
    )  # fmt: skip


def arms(recipe: Recipe, times: list[int]) -> dict[str, Recipe]:
    """Return the recipes by name: ``mean`` at the batch itself, both at each multiple of it."""
    rows, found = recipe.data.most_rows, {"mean x1": recipe}
    for k in times:
        large = recipe.with_(data={"batch_size": rows * k})
        found[f"mean x{k}"] = large
        found[f"adasum x{k}"] = large.with_(optimizer={"combine": {"kind": "adasum", "workers": k}})
    return found


def tuned(recipe: Recipe, rates: list[float], loss: Callable[[Recipe], float]) -> tuple[float, dict[float, float]]:
    """Return the best rate and all that were tried, a factor of 2 beyond the grid while the best is at its end."""
    tried = {rate: loss(recipe.with_(optimizer={"lr": rate}, seed=TUNING_SEED)) for rate in sorted(rates)}
    for _ in range(2):
        best = min(tried, key=tried.__getitem__)
        if min(tried) < best < max(tried):
            break
        further = best / 2 if best == min(tried) else best * 2
        tried[further] = loss(recipe.with_(optimizer={"lr": further}, seed=TUNING_SEED))
    return min(tried, key=tried.__getitem__), dict(sorted(tried.items()))


def _measured(options: Options) -> dict[str, Any]:
    recipe = base(options.optimizer, options.rows, options.tokens).with_assignments(options.set)
    found: dict[str, Any] = {}
    for name, arm in arms(recipe, options.times).items():
        rate, tried = tuned(arm, options.rates, trained_loss)
        losses = [trained_loss(arm.with_(optimizer={"lr": rate}, seed=seed)) for seed in range(options.seeds)]
        found[name] = {"rows": arm.data.most_rows, "rate": rate, "tuning": tried, "losses": losses}
        print(f"{name}: rate {rate:g}, {', '.join(f'{loss:.3f}' for loss in losses)} nats", flush=True)
    return {"recipe": recipe.to_dict(), "arms": found}


def _show(result: Mapping[str, Any], console: Console, _path: Path) -> None:
    table = Table("arm", "rows", "best rate", "held-out nats by seed", "mean", "beside the mean of gradients")
    for name, arm in result["arms"].items():
        twin = result["arms"][name.replace("adasum", "mean")]
        gaps = [ours - theirs for ours, theirs in zip(arm["losses"], twin["losses"], strict=True)]
        words = "" if twin is arm else f"{statistics.mean(gaps):+.3f} ({min(gaps):+.3f} to {max(gaps):+.3f})"
        nats = ", ".join(f"{loss:.3f}" for loss in arm["losses"])
        table.add_row(name, str(arm["rows"]), f"{arm['rate']:g}", nats, f"{statistics.mean(arm['losses']):.3f}", words)
    console.print(table)


main = Bench(
    "adasum", __doc__, _measured, _show,
    options={
        "--optimizer": {"default": "adamw", "choices": ("adamw", "lamb", "lans"), "help": "(%(default)s)"},
        "--rows": {"type": int, "default": 8, "help": "of 64 tokens in the smallest batch (%(default)s)"},
        "--times": {"type": int, "nargs": "+", "default": [2, 4, 8], "help": "multiples of it, powers of two"},
        "--tokens": {"type": int, "default": 200_000, "help": "of every run (%(default)s)"},
        "--rates": {"type": float, "nargs": "+", "default": [1e-3, 2e-3, 4e-3], "help": "tried first"},
        "--seeds": {"type": int, "default": 3, "help": "(%(default)s)"},
        "--set": {"action": "append", "default": [], "metavar": "PATH=VALUE", "help": "change the recipe"},
    },
).main  # fmt: skip
