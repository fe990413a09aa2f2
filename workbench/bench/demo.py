"""Measure `make demo` seed by seed: its two runs side by side, without notebook and report."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from workbench.bench.table import Options
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.experiments.demo import follow, prepare, stop
from workbench.recipes import presets
from workbench.recipes.recipe import Recipe

KEPT = ("state", "steps", "tokens", "seconds", "tokens_per_second", "heldout_loss", "bits_per_byte", "learned")


def measure(recipes: Sequence[Recipe], seeds: Sequence[int], runs_dir: Path | None, console: Console) -> dict[str, Any]:
    """Train the demo's recipes side by side, once per seed.

    Returns:
        ``runs`` by recipe and seed, ``unigram_entropy`` and ``bigram_entropy`` in nats, and ``gap_nats`` of the last
        recipe: how far below the floor of word frequencies it ended, by seed, with mean and spread (the range).

    Raises:
        RunFailed: a run failed; its neighbour is stopped.
    """
    prepare(recipes, console)
    found: list[dict[str, Any]] = []
    for seed in seeds:
        runs: list[Run] = []
        try:
            # One by one: of two runs, the first is to be stopped where the second could not start.
            for recipe in recipes:
                runs.append(launch(recipe.with_(seed=seed), runs_dir=runs_dir))
            follow(runs, console)
        except BaseException:
            stop(runs, console)
            raise
        for recipe, run in zip(recipes, runs, strict=True):
            found.append({**run.result, "recipe": recipe.name, "seed": seed})
    floors = {name: found[0][name] for name in ("unigram_entropy", "bigram_entropy")}
    gaps = [floors["unigram_entropy"] - run["heldout_loss"] for run in found if run["recipe"] == recipes[-1].name]
    return {
        **floors,
        "gap_nats": {"by_seed": gaps, "mean": statistics.mean(gaps), "spread": max(gaps) - min(gaps)},
        "runs": [{name: run[name] for name in ("recipe", "seed", *KEPT)} for run in found],
    }


def measured(options: Options) -> dict[str, Any]:
    """Measure what the options ask for."""
    recipes = (presets.demo_baseline(options.seconds), presets.demo_fast(options.seconds))
    return measure(recipes, options.seeds, options.runs, Console())
