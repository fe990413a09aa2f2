"""Measure the time that a user waits: importing the package, listing runs, from a launch to its first point.

A launch is of `fast` with warm caches, eager and compiled; alone and beside another training that goes on, each on one
thread, as the queue lets them share two cores; by a new process, and by one that was held ready.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from workbench.bench.result import spread
from workbench.bench.rounds import alternate
from workbench.bench.table import Options
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.launchers import fork_server
from workbench.recipes import presets
from workbench.recipes.recipe import Recipe
from workbench.store.folder import read_object
from workbench.telemetry.streams import TelemetryReader

COMMANDS = {
    "import workbench": ["-c", "import workbench"],
    # In every reading below and above: how much of it is the interpreter itself.
    "python alone": ["-c", "pass"],
    "workbench runs": ["-m", "workbench", "runs"],
}
LONGER_THAN_THE_BENCH = "1 h"
LOADING_SECONDS = 10.0
"""For a trainer that is held ready to load everything, beside another training, too."""
LOOK_SECONDS = 0.02


def measure(repeats: int, runs_dir: str) -> dict[str, dict[str, float]]:
    """Return wall seconds of each command as a fresh process: median, least, greatest."""

    def taken(name: str) -> float:
        extra = ["--runs", runs_dir] if name == "workbench runs" else []
        start = time.perf_counter()
        subprocess.run([sys.executable, *COMMANDS[name], *extra], check=True, capture_output=True)
        return time.perf_counter() - start

    readings = alternate({name: partial(taken, name) for name in COMMANDS}, repeats)
    return {name: spread(values) for name, values in readings.items()}


def first_points(recipe: Recipe, repeats: int, runs_dir: Path) -> dict[str, dict[str, Any]]:
    """Return seconds from a launch to the run's first loss, by case: see the module.

    Returns:
        By case: ``seconds`` (median, least, greatest) and ``stages``, the medians of what the trainer says of its own
        start.
    """
    variants = {name: recipe.with_(execution={"compile": name == "compiled"}) for name in ("eager", "compiled")}
    for each in variants.values():
        # Text, graphs, measurements: what only the first run of a machine has to do.
        first_point(each, runs_dir)
    found = {name: _repeated(each, repeats, runs_dir) for name, each in variants.items()}
    found |= {f"{name}, held ready": _repeated(each, repeats, runs_dir, ready=True) for name, each in variants.items()}
    narrow = {name: each.with_(execution={"threads": 1}) for name, each in variants.items()}
    with _training(narrow["compiled"].with_(budget=LONGER_THAN_THE_BENCH), runs_dir):
        for name, each in narrow.items():
            first_point(each, runs_dir)
            found[f"{name}, beside a training"] = _repeated(each, repeats, runs_dir)
            found[f"{name}, held ready, beside a training"] = _repeated(each, repeats, runs_dir, ready=True)
    return found


def first_point(recipe: Recipe, runs_dir: Path, *, ready: bool = False) -> tuple[float, dict[str, float]]:
    """Return seconds from a launch to the run's first loss, and those of the trainer's stages; the run is stopped then.

    Args:
        ready: by a trainer that was held ready and has loaded everything.

    Raises:
        RunFailed: it has none.
    """
    # Of the launch before.
    fork_server.release()
    if ready:
        fork_server.hold()
        time.sleep(LOADING_SECONDS)
    began = time.perf_counter()
    run = launch(recipe, runs_dir=runs_dir, queue=False, say=None)
    try:
        _wait_for_a_point(run)
        return time.perf_counter() - began, read_object(run.folder.environment)["start_seconds"]
    finally:
        _end(run)


def _repeated(recipe: Recipe, repeats: int, runs_dir: Path, *, ready: bool = False) -> dict[str, Any]:
    readings = [first_point(recipe, runs_dir, ready=ready) for _ in range(repeats)]
    stages = {name: spread([each.get(name, 0.0) for _, each in readings])["median"] for name in readings[0][1]}
    return {"seconds": spread([seconds for seconds, _ in readings]), "stages": stages}


@contextmanager
def _training(recipe: Recipe, runs_dir: Path) -> Iterator[None]:
    run = launch(recipe, runs_dir=runs_dir, queue=False, say=None)
    try:
        _wait_for_a_point(run)
        yield
    finally:
        _end(run)


def _wait_for_a_point(run: Run) -> None:
    reader = TelemetryReader(run.folder.telemetry)
    # What the reader holds: the stream itself begins with a rewind.
    while not (reader.poll("scalars") and reader.telemetry.scalars):
        if run.state.final:
            run.outcome()
        time.sleep(LOOK_SECONDS)


def _end(run: Run) -> None:
    if not run.state.final:
        run.stop()
    run.wait_blocking()


def measured(options: Options) -> dict[str, Any]:
    """Measure what the options ask for."""
    with tempfile.TemporaryDirectory() as empty:
        seconds = measure(options.repeats, empty)
        return {"seconds": seconds, "first_points": first_points(presets.fast(), options.launches, Path(empty, "runs"))}
