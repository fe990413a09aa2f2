"""Tokens per second beside transformers' Trainer: same tokenizer, text, row length, batch and mask rate.

Claim 1 (systems) of an honest comparison: contenders alternate round by round in one process group, after their
own warm-up, data loading and telemetry included; medians of paired ratios, every reading kept.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from workbench.bench.contender import take_turns
from workbench.bench.result import save, spread
from workbench.recipe import Recipe

OURS = "workbench.bench.peer_workbench"
THEIRS = "workbench.bench.peer_transformers"
PEERS = {"transformers default": False, "transformers tuned": True}


def contenders(
    recipe: Recipe, warmup: int, workers: int, peers: Sequence[str] = tuple(PEERS)
) -> list[tuple[str, dict[str, Any]]]:
    """Module and setting of each contender: ours first, then transformers' Trainer at its defaults and tuned.

    Args:
        recipe: ours; the peers take its data, size and seed.
        warmup: steps before the first timed one (compilation happens there).
        workers: data-loader workers of the tuned Trainer.
    """
    shared = {"recipe": recipe.to_dict(), "warmup": warmup, "mask_rate": 0.15, "lr": 1e-3}
    ours = (OURS, {**shared, "name": "workbench"})
    theirs = [
        (THEIRS, {**shared, "name": name, "tuned": tuned, "workers": workers if tuned else 0})
        for name, tuned in PEERS.items()
        if name in peers
    ]
    return [ours, *theirs]


def measure(
    recipe: Recipe, *, rounds: int, steps: int, warmup: int, workers: int, peers: Sequence[str] = tuple(PEERS)
) -> dict[str, Any]:
    """Alternate the contenders for ``rounds`` rounds of ``steps`` steps each.

    Returns:
        ``{"contenders": {name: {"tokens_per_second": spread, "attention": implementation, "readings": [...], "ready":
        ...}}, "ratios": {peer: spread of ours / peer by round}, ...}``.
    """
    ready, answers = take_turns(contenders(recipe, warmup, workers, peers), rounds, steps)
    readings = {name: [each["tokens"] / each["seconds"] for each in own] for name, own in answers.items()}
    ours = readings["workbench"]
    return {
        "protocol": f"{rounds} alternating rounds of {steps} steps after {warmup} warm-up steps, one process each",
        "recipe": recipe.to_dict(),
        "contenders": {
            name: {
                "tokens_per_second": spread(readings[name]),
                "attention": said["attention"],
                "readings": readings[name],
                "ready": said,
            }
            for name, said in ready.items()
        },
        "ratios": {
            # Ratios within a round, then their median: a slow minute cancels.
            name: spread([a / b for a, b in zip(ours, theirs, strict=True)])
            for name, theirs in readings.items()
            if name != "workbench"
        },
    }


def main(argv: list[str]) -> int:
    """``workbench bench peers``: measure, print the table, save the JSON."""
    from workbench import presets

    parser = argparse.ArgumentParser(prog="workbench bench peers", description=__doc__)
    parser.add_argument("--preset", default="bert_tiny", help="our recipe; the peers take its data and size")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="change the recipe")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=8, help="timed steps per round and contender")
    parser.add_argument("--warmup", type=int, default=4)
    parser.add_argument("--workers", type=int, default=0, help="data-loader workers of the tuned Trainer")
    parser.add_argument("--out", type=Path, default=Path("out/bench"), help="folder for the JSON file")
    options = parser.parse_args(argv)
    recipe = presets.get(options.preset).with_assignments(options.set)
    console = Console()
    counts = {name: getattr(options, name) for name in ("rounds", "steps", "warmup", "workers")}
    result = measure(recipe, **counts)
    console.print(table(result))
    console.print(f"saved {save('peers', result, options.out)}")
    return 0


def table(result: dict[str, Any]) -> Table:
    """One row per contender of a result of :func:`measure`."""
    found = Table("contender", "attention", "tokens/s (median)", "range", "workbench is faster by")
    for name, figures in result["contenders"].items():
        rate, ratio = figures["tokens_per_second"], result["ratios"].get(name)
        gain = f"{ratio['median']:.2f}x ({ratio['min']:.2f} to {ratio['max']:.2f})" if ratio else ""
        span = f"{rate['min']:,.0f} to {rate['max']:,.0f}"
        found.add_row(name, figures["attention"], f"{rate['median']:,.0f}", span, gain)
    return found
