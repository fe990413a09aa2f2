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
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from workbench.bench.harness import recipe_of
from workbench.bench.result import spread, verdict
from workbench.bench.rounds import alternate
from workbench.bench.table import Options
from workbench.client.launch import launch
from workbench.forecasting.scale import Cluster
from workbench.launchers.launcher import Launcher
from workbench.launchers.local import Local
from workbench.recipes.recipe import Recipe

FOUR = 4
"""Bytes of a gradient as it is sent."""
_SUMS = """
import sys, time
import torch
from workbench.choices.execution.ranks import Ranks
torch.set_num_threads(1)
ranks, seconds = Ranks.join(int(sys.argv[2]), 2), []
for _ in range(12):
    flat = torch.ones(int(sys.argv[1]))
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


def trained(recipe: Recipe, on: Launcher, runs_dir: Path, skipped: int) -> dict[str, float]:
    """Train on a launcher, to the end.

    Returns:
        Medians over the steps after the first ``skipped``: ``step_ms``, ``waited_ms``, ``sent_mib``; ``parameters``.
    """
    # Launchers without this machine's queue refuse to be told to skip it.
    run = launch(recipe, on, runs_dir, queue=not on.queues, say=None)
    run.wait_blocking()
    found = {}
    for name in ("step_ms", "waited_ms", "sent_mib"):
        values = run.telemetry().series(name)[1][skipped:]
        found[name] = statistics.median(values) if values else 0.0
    return {**found, "parameters": float(run.result.parameters or 0)}


def together(command: Sequence[str]) -> list[str]:
    """Run a command as two processes that meet on this machine, its last argument the rank; return their outputs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    there = os.environ | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"}
    both = [
        subprocess.Popen([sys.executable, *command, str(rank)], env=there, stdout=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    return [process.communicate()[0] for process in both]


def seconds_of_a_sum(numbers: int) -> float:
    """Return the seconds in which two processes of this machine sum so many float32 numbers, the median of twelve."""
    return float(max(together(["-c", _SUMS, str(numbers)])))


def measured(options: Options) -> dict[str, Any]:
    """Measure what the options ask for."""
    recipe = recipe_of(options).with_(budget=f"{options.warmup + options.steps} steps", execution={"scalars_every": 1})
    rivals = arms(recipe)
    with tempfile.TemporaryDirectory() as runs:
        ours = {
            name: partial(trained, each, Local(processes=many), Path(runs), options.warmup)
            for name, (each, many) in rivals.items()
        }
        readings = alternate(ours, options.rounds)
    parameters = int(readings["one"][0].pop("parameters"))
    found = {
        name: {key: spread([each[key] for each in rounds]) for key in rounds[-1] if key != "parameters"}
        for name, rounds in readings.items()
    }
    step = {name: each["step_ms"]["median"] for name, each in found.items()}
    summed = seconds_of_a_sum(parameters)
    # Of one device's half and a measured link: bytes are known, and a ring of two sends each of them once.
    link = FOUR * parameters / summed / 1e9
    forecast = step["half"] + 1e3 * Cluster(per_node=2, inside=link).sending(2, FOUR * parameters)
    return {
        "recipe": recipe.to_dict(), "arms": found, "link_gb_per_s": link, "parameters": parameters,
        "strong": step["one"] / step["two"], "weak": (weak := step["one"] / step["double"]),
        "forecast_ms": forecast, "error": forecast / step["two"] - 1,
        "verdicts": [
            verdict("efficiency of two processes at twice the batch", weak, ">=", 0.9, "share"),
        ],
    }  # fmt: skip
