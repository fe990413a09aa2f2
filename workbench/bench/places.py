"""One recipe in two processes of this machine, started by torchrun's agent under our supervisor, and by Ray, in turns.

The cluster must be there, with two cores (``ray start --head --num-cpus=2``); what its own processes take of the
machine slows both alike, and is measured beside them.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from workbench.bench.harness import recipe_of
from workbench.bench.processes import trained
from workbench.bench.result import spread
from workbench.bench.rounds import alternate
from workbench.bench.table import Options
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


def measured(options: Options) -> dict[str, Any]:
    """Measure what the options ask for."""
    recipe = recipe_of(options).with_(
        budget=f"{options.warmup + options.steps} steps", execution={"threads": 1, "scalars_every": 1}
    )
    places = {"torchrun": Local(processes=2), "ray": Ray(address=options.address, processes=2)}
    before, began = ray_seconds(), time.monotonic()
    time.sleep(IDLE_SECONDS)
    idle = (ray_seconds() - before) / (time.monotonic() - began)
    with tempfile.TemporaryDirectory() as runs:
        rivals = {name: partial(trained, recipe, on, Path(runs), options.warmup) for name, on in places.items()}
        readings = alternate(rivals, options.rounds, told=True)
    took = {name: [each["step_ms"] for each in rounds] for name, rounds in readings.items()}
    pairs = [ray / torchrun for ray, torchrun in zip(took["ray"], took["torchrun"], strict=True)]
    return {
        "recipe": recipe.to_dict(), "step_ms": {name: spread(each) for name, each in took.items()}, "readings": took,
        "ratio": spread(pairs), "cores_of_an_idle_cluster": idle,
    }  # fmt: skip
