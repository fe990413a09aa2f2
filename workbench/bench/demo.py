"""Measure `make demo` seed by seed: its two runs side by side, without notebook and report."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from workbench.bench.result import save
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.experiments.demo import SECONDS, follow, prepare, stop
from workbench.recipes import presets
from workbench.recipes.recipe import Recipe

KEPT = ("state", "steps", "tokens", "seconds", "tokens_per_second", "heldout_loss", "bits_per_byte", "learned")


def main(argv: list[str]) -> int:
    """``workbench bench demo``: gaps to the floor of word frequencies, saved as one JSON file."""
    parser = argparse.ArgumentParser(prog="workbench bench demo", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="one pair of runs each")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="training seconds of each run (%(default)g)")
    parser.add_argument("--runs", type=Path, help="the runs folder; else $WORKBENCH_RUNS, else ./runs")
    parser.add_argument("--results", type=Path, default=Path("docs/results"), help="folder for the JSON file")
    options = parser.parse_args(argv)
    recipes = (presets.demo_baseline(options.seconds), presets.demo_fast(options.seconds))
    result = measure(recipes, options.seeds, options.runs, Console())
    print(result["gap_nats"], save("demo", result, options.results))
    return 0


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
