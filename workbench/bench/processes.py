"""One process beside two on this machine: strong and weak scaling, and how well it was forecast from one.

Each run trains alone, one thread to a process; runs take turns. ``half`` is one process with half the rows: what two
would take if nothing were sent and they did not disturb each other.
"""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from workbench.bench.harness import Bench, Options, in_turn, recipe_of
from workbench.bench.result import spread
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.forecasting.scale import Cluster
from workbench.launchers.local import Local
from workbench.recipes.recipe import Recipe

FOUR = 4
"""Bytes of a gradient as it is sent."""
_SUMS = """
import sys, time
import torch
from workbench.choices.execution.ranks import Ranks
torch.set_num_threads(1)
ranks, seconds = Ranks.join(int(sys.argv[1]), 2), []
for _ in range(12):
    flat = torch.ones(int(sys.argv[2]))
    ranks.meet()
    began = time.perf_counter()
    ranks.reduce([flat])
    seconds.append(time.perf_counter() - began)
print(sorted(seconds)[6])
"""


def arms(recipe: Recipe) -> dict[str, tuple[Recipe, int]]:
    """Return recipe and number of processes by name."""
    rows = recipe.data.most_rows

    def sized(many: int) -> Recipe:
        return recipe.with_(data={"batch_size": many}, execution={"threads": 1, "micro_batch_size": many})

    whole, half, double = sized(rows), sized(rows // 2), sized(2 * rows)
    return {"one": (whole, 1), "half": (half, 1), "double": (double, 2), "two": (whole, 2)}


def trained(recipe: Recipe, processes: int, runs_dir: Path) -> Run:
    """Train in so many processes, to the end."""
    run = launch(recipe, Local(processes=processes), runs_dir, queue=False, say=None)
    run.wait_blocking()
    return run


def medians(run: Run, skipped: int) -> dict[str, float]:
    """Return medians over the steps after the first ``skipped``: ``step_ms``, ``waited_ms``, ``sent_mib``."""
    found = {}
    for name in ("step_ms", "waited_ms", "sent_mib"):
        values = run.telemetry().series(name)[1][skipped:]
        found[name] = statistics.median(values) if values else 0.0
    return found


def seconds_of_a_sum(numbers: int) -> float:
    """Return the seconds in which two processes of this machine sum so many float32 numbers, the median of twelve."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    there = os.environ | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"}
    both = [
        subprocess.Popen(
            [sys.executable, "-c", _SUMS, str(rank), str(numbers)], env=there, stdout=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    return float(max(process.communicate()[0] for process in both))


def _measured(options: Options) -> dict[str, Any]:
    recipe = recipe_of(options).with_(budget=f"{options.warmup + options.steps} steps", execution={"scalars_every": 1})
    rivals = arms(recipe)
    readings: dict[str, list[dict[str, float]]] = {name: [] for name in rivals}
    with tempfile.TemporaryDirectory() as runs:
        for number in range(options.rounds):
            for name in in_turn(list(readings), number):
                run = trained(*rivals[name], Path(runs))
                readings[name].append(medians(run, options.warmup))
        parameters = int(run.result.parameters or 0)
    found = {
        name: {key: spread([each[key] for each in rounds]) for key in rounds[0]} for name, rounds in readings.items()
    }
    step = {name: each["step_ms"]["median"] for name, each in found.items()}
    summed = seconds_of_a_sum(parameters)
    # Of one device's half and a measured link: bytes are known, and a ring of two sends each of them once.
    link = FOUR * parameters / summed / 1e9
    forecast = step["half"] + 1e3 * Cluster(per_node=2, inside=link).sending(2, FOUR * parameters)
    return {
        "recipe": recipe.to_dict(), "arms": found, "link_gb_per_s": link, "parameters": parameters,
        "strong": step["one"] / step["two"], "weak": step["one"] / step["double"],
        "forecast_ms": forecast, "error": forecast / step["two"] - 1,
    }  # fmt: skip


def _show(result: Mapping[str, Any], console: Console, _path: Path) -> None:
    table = Table("arm", "step, ms", "waited, ms", "sent, MiB")
    for name, arm in result["arms"].items():
        step = arm["step_ms"]
        others = [f"{arm[key]['median']:.1f}" for key in ("waited_ms", "sent_mib")]
        table.add_row(name, f"{step['median']:.1f} ({step['min']:.1f} to {step['max']:.1f})", *others)
    console.print(table)
    console.print(
        f"two processes: {result['strong']:.2f}x at one batch, {result['weak']:.0%} efficient at twice the batch"
    )
    console.print(
        f"forecast of two from half and a link of {result['link_gb_per_s']:.2f} GB/s: {result['forecast_ms']:.1f} ms, "
        f"{result['error']:+.0%}"
    )


main = Bench("processes", __doc__, _measured, _show, preset="fast", rounds=3, steps=40, warmup=10).main
