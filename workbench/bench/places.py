"""One recipe in two processes of this machine, started by torchrun's agent under our supervisor, and by Ray, in turns.

The cluster must be there, with two cores (``ray start --head --num-cpus=2``); what its own processes take of the
machine slows both alike, and is measured beside them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console

from workbench.bench.harness import Bench, Options, in_turn, recipe_of
from workbench.bench.processes import medians
from workbench.bench.result import spread
from workbench.client.launch import launch
from workbench.launchers.local import Local
from workbench.launchers.ray import Ray

IDLE_SECONDS = 20.0
"""For which the cluster's own processes are watched, while nothing trains."""


def ray_seconds() -> float:
    """Return the processor seconds that Ray's own processes on this machine have taken so far."""
    taken = 0.0
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if any("/ray/" in word for word in process.cmdline()[:3]):
                taken += sum(process.cpu_times()[:2])
    return taken


def _measured(options: Options) -> dict[str, Any]:
    recipe = recipe_of(options).with_(
        budget=f"{options.warmup + options.steps} steps", execution={"threads": 1, "scalars_every": 1}
    )
    places = {"torchrun": Local(processes=2), "ray": Ray(address=options.address, processes=2)}
    before, began = ray_seconds(), time.monotonic()
    time.sleep(IDLE_SECONDS)
    idle = (ray_seconds() - before) / (time.monotonic() - began)
    took: dict[str, list[float]] = {name: [] for name in places}
    with tempfile.TemporaryDirectory() as runs:
        for number in range(options.rounds):
            for name in in_turn(list(places), number):
                run = launch(recipe, places[name], Path(runs), queue=False, say=None)
                run.wait_blocking()
                took[name].append(medians(run, options.warmup)["step_ms"])
                print(f"{name}: {took[name][-1]:.1f} ms", flush=True)
    pairs = [ray / torchrun for ray, torchrun in zip(took["ray"], took["torchrun"], strict=True)]
    return {
        "recipe": recipe.to_dict(), "step_ms": {name: spread(each) for name, each in took.items()}, "readings": took,
        "ratio": spread(pairs), "cores_of_an_idle_cluster": idle,
    }  # fmt: skip


def _show(result: Mapping[str, Any], console: Console, _path: Path) -> None:
    ms, ratio = result["step_ms"], result["ratio"]
    console.print(
        f"a step under Ray {ms['ray']['median']:.1f} ms, under torchrun's agent {ms['torchrun']['median']:.1f} ms: "
        f"{ratio['median']:.3f} ({ratio['min']:.3f} to {ratio['max']:.3f}); the idle cluster takes "
        f"{result['cores_of_an_idle_cluster']:.1%} of a core"
    )


main = Bench(
    "places", __doc__, _measured, _show, preset="fast", rounds=4, steps=40, warmup=10,
    options={"--address": {"default": "auto", "help": "HOST:PORT of the Ray cluster (%(default)s)"}},
).main  # fmt: skip
