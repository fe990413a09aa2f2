"""Twenty learners on one machine: processes with owners of their own launch tiny runs, five pages look on.

    python -m tests.workshop.room docs/results/workshop.json

Pages are what JupyterLab's list of runs asks of the server, every two seconds each; no browser draws them.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from tests.browser.servers import free_port
from tests.corpus import write_corpus
from tests.tiny_runs import tiny_recipe
from workbench.client.listing import Listing
from workbench.launchers.launched import Launched
from workbench.launchers.queue.settings import write_settings
from workbench.recipes.recipe import Recipe
from workbench.store.folder import RunFolder
from workbench.store.state import FINAL, read_state

PAGES, PAGE_SECONDS = 5, 2.0
LIMITS = {"cores": 2, "running_per_owner": 1, "waiting_per_owner": 5, "seconds_per_run": 180}
_LEARNER = """
import pathlib, sys, time
import workbench as wb
recipe, here, go = wb.Recipe.load(sys.argv[1]), pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
here.touch()
while not go.exists():
    time.sleep(0.05)
for _ in range(int(sys.argv[4])):
    wb.launch(recipe, say=None)
"""


def hold(folder: Path, recipe: Recipe, learners: int = 20, each: int = 2, patience: float = 900.0) -> dict[str, Any]:
    """Let everybody launch at once; returns what was measured once all runs have ended.

    Args:
        folder: for runs and queue. each: runs of a learner.
    """
    runs, queue, path = folder / "runs", folder / "queue", folder / "recipe.json"
    runs.mkdir(parents=True)
    queue.mkdir()
    write_settings(queue, LIMITS)
    recipe.save(path)
    environment = {**os.environ, "WORKBENCH_RUNS": str(runs), "WORKBENCH_QUEUE": str(queue), "WORKBENCH_REPORT": "off"}
    with _server(folder, environment) as (server, asked):
        people = [_learner(folder, path, number, each, environment) for number in range(learners)]
        _wait(lambda: len(list(folder.glob("here-*"))) == learners, patience, "every learner's notebook")
        cpu, began = _cpu(server), time.time()
        (folder / "go").touch()
        for person in people:
            assert person.wait(timeout=patience) == 0, "a launch was refused"
        _wait(lambda: _ended(runs) == learners * each, patience, "the end of all runs")
        seconds = time.time() - began
        share = (_cpu(server) - cpu) / seconds
    return _measured(runs, learners, each, seconds, share, asked)


def _learner(folder: Path, recipe: Path, number: int, each: int, environment: dict[str, str]) -> Any:
    arguments = [str(recipe), str(folder / f"here-{number}"), str(folder / "go"), str(each)]
    environment = {**environment, "WORKBENCH_OWNER": f"learner {number + 1}"}
    return subprocess.Popen([sys.executable, "-c", _LEARNER, *arguments], cwd=folder, env=environment)


@contextmanager
def _server(folder: Path, environment: dict[str, str]) -> Iterator[tuple[psutil.Process, list[float]]]:
    """A Jupyter server with pages that ask for all runs; yields its process and the seconds that each answer took."""
    port = free_port()
    flags = [f"--ServerApp.port={port}", "--IdentityProvider.token=t", "--ServerApp.open_browser=False",
             f"--ServerApp.root_dir={folder}", "--ServerApp.allow_root=True"]  # fmt: skip
    log = (folder / "server.log").open("wb")
    process = subprocess.Popen([sys.executable, "-m", "jupyter", "server", *flags], env=environment, stdout=log,
                               stderr=log, cwd=folder)  # fmt: skip
    asked: list[float] = []
    over = threading.Event()

    def ask() -> float:
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/workbench/api/runs", headers={"Authorization": "token t"}
        )
        began = time.monotonic()
        with urllib.request.urlopen(request, timeout=60) as response:
            json.loads(response.read())
        return time.monotonic() - began

    def answers() -> bool:
        try:
            ask()
        except OSError:
            return False
        return True

    def page() -> None:
        while not over.wait(PAGE_SECONDS):
            asked.append(ask())

    try:
        _wait(answers, 120, "the server")
        threads = [threading.Thread(target=page, daemon=True) for _ in range(PAGES)]
        for thread in threads:
            thread.start()
        yield psutil.Process(process.pid), asked
    finally:
        over.set()
        process.terminate()
        process.wait(timeout=30)
        log.close()


def _measured(runs: Path, learners: int, each: int, seconds: float, share: float, asked: list[float]) -> dict[str, Any]:
    rows = Listing(runs).look().rows
    launched = {row["id"]: Launched.read(RunFolder(runs / row["id"])).time for row in rows}
    by: dict[str, list[float]] = {}
    waits: dict[str, list[float]] = {}
    for row in sorted(rows, key=lambda row: row["started"] or float("inf")):
        by.setdefault(row["owner"], []).append(row["started"] or float("inf"))
        waits.setdefault(row["owner"], []).append((row["started"] or float("inf")) - launched[row["id"]])
    first = [starts[0] for starts in by.values()]
    second = [start for starts in by.values() for start in starts[1:]]
    waited = sorted(found[0] for found in waits.values())
    statuses = {status: sum(row["status"] == status for row in rows) for status in {row["status"] for row in rows}}
    return {
        "learners": learners, "runs": len(rows), "pages": PAGES, "limits": LIMITS,
        "second_before_last_first": sum(start < max(first) for start in second),
        "first_curve_seconds": {"median": round(statistics.median(waited), 1), "longest": round(waited[-1], 1)},
        "all_runs_seconds": round(seconds, 1),
        "statuses": statuses, "without_a_final_word": len(rows) - sum(statuses.get(each, 0) for each in FINAL)
        + learners * each - len(rows),
        "server_share_of_a_core": round(share, 3), "page_answers": len(asked),
        "page_answer_seconds": {"median": round(statistics.median(asked), 3), "longest": round(max(asked), 3)},
    }  # fmt: skip


def _ended(runs: Path) -> int:
    return sum(
        read_state(RunFolder(path)).status in FINAL for path in runs.glob("2*") if (path / "state.json").exists()
    )


def _cpu(process: psutil.Process) -> float:
    return sum(process.cpu_times()[:2])


def _wait(true: Any, seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"{what} did not come within {seconds:.0f} s"
        time.sleep(0.2)


def main() -> None:
    """Hold the room in a scratch folder, and write what was measured to the file named."""
    with tempfile.TemporaryDirectory() as aside:
        corpus = write_corpus(Path(aside, "corpus"))
        recipe = tiny_recipe(corpus).with_(budget={"amount": 3, "unit": "seconds", "evaluations": 1})
        load = os.getloadavg()[0]
        found = hold(Path(aside, "room"), recipe)
    machine = {"cores": os.cpu_count(), "processor": platform.processor() or platform.machine(),
               "memory_gib": round(psutil.virtual_memory().total / 2**30, 1), "load_before": round(load, 1),
               "python": platform.python_version()}  # fmt: skip
    shown = {"date": time.strftime("%Y-%m-%d"), "machine": machine, "recipe": "tiny, 3 seconds on one thread", **found}
    Path(sys.argv[1]).write_text(json.dumps(shown, indent=1) + "\n")
    print(json.dumps(shown, indent=1))


if __name__ == "__main__":
    main()
