"""Batches that grow, with gradients averaged and with AdaSum: the held-out loss after equally many tokens.

A batch of k times the rows takes k times fewer steps. AdaSum gives each k-th of it a worker of its own. The rate of
every arm is tuned alike, on a seed of its own. All of it trains in one process and thread: equal tokens need no clock.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.bench.contender import note
from workbench.bench.presets import best_rate, nats_of
from workbench.bench.result import spread
from workbench.bench.table import Options
from workbench.bench.tuning_worker import train
from workbench.choices.data.prepare import prepare
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


def losses_of(recipes: Sequence[Recipe]) -> list[float]:
    """Return the held-out nats of whole runs in this process."""
    return [nats_of(train(recipe, prepare(recipe.data, say=lambda line: None))) for recipe in recipes]


def measured(options: Options) -> dict[str, Any]:
    """Measure what the options ask for."""
    recipe = base(options.optimizer, options.rows, options.tokens).with_assignments(options.set)
    found: dict[str, Any] = {}
    for name, arm in arms(recipe, options.times).items():
        tried = best_rate(arm.with_(seed=TUNING_SEED), options.rates, losses_of)
        rate = min(tried, key=tried.__getitem__)
        losses = losses_of([arm.with_(optimizer={"lr": rate}, seed=seed) for seed in range(options.seeds)])
        found[name] = {
            "rows": arm.data.most_rows,
            "rate": rate,
            "tuning": dict(sorted(tried.items())),
            "losses": losses,
        }
        note(f"{name}: rate {rate:g}, {', '.join(f'{loss:.3f}' for loss in losses)} nats")
    return {"recipe": recipe.to_dict(), "arms": found}


def shown(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arms with their mean, and how far they lie from the mean of gradients, a spread over seeds."""
    arms = {}
    for name, arm in result["arms"].items():
        twin = result["arms"][name.replace("adasum", "mean")]
        gaps = [ours - theirs for ours, theirs in zip(arm["losses"], twin["losses"], strict=True)]
        arms[name] = {
            **arm,
            "mean_loss": statistics.mean(arm["losses"]),
            "beside_the_mean_of_gradients": None if twin is arm else spread(gaps),
        }
    return {"arms": arms}
