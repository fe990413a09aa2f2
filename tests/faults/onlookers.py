"""``python -m tests.faults.onlookers [--onlookers 20] --out FILE``: what do twenty browsers on one run cost?

A real page of JupyterLab watches the run without a kernel, and what it asks of the server is counted. Then twenty
clients ask the same at the same pace (twenty Chromiums would measure this machine, not the server), for a while and
not, in turns A B B A. Measured: CPU seconds per step of the trainer with and without, and the server's share of a core.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import statistics
import sys
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import expect

from tests.browser.jupyter import chromium_page
from tests.browser.servers import Server, jupyterlab
from tests.faults.soak import view
from tests.tiny_runs import wait_until
from workbench.bench.result import context, spread
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.recipes import presets
from workbench.store.folder import write_json

_WATCH = "([run, name]) => window.jupyterapp.commands.execute('workbench:watch', {run, name})"
_SETTLE_SECONDS = 5.0


def measure(onlookers: int, turns: int, seconds: float) -> dict[str, Any]:
    """Return what a page asks, the trainer's CPU milliseconds per step, and the server's share of a core.

    Args:
        turns: A B B A so often. seconds: of each of its four parts.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        home = Path(scratch)
        folders = {name: str(home / name.lower()) for name in ("WORKBENCH_CACHE", "WORKBENCH_QUEUE", "WORKBENCH_RUNS")}
        os.environ.update(folders | {"OMP_NUM_THREADS": "1"})
        runs = Path(folders["WORKBENCH_RUNS"])
        run = launch(presets.quickstart().with_(budget="10_000_000 steps"), runs_dir=runs, say=None)
        try:
            wait_until(lambda: run.status == "running" and run.state.step > 0, 300, "the first step")
            with jupyterlab(home / "lab", runs) as server:
                asked = _page_asks(server, run, seconds)
                parts = [_part(server, run, seconds, onlookers * watched) for watched in (0, 1, 1, 0) * turns]
        finally:
            run.stop()
            run.wait_blocking()
    return {"onlookers": onlookers, "seconds_per_part": seconds, "a_page_asks_per_second": asked, **_compared(parts)}


def _page_asks(server: Server, run: Run, seconds: float) -> dict[str, float]:
    """Requests per second of a real page that watches the run, by path."""
    with chromium_page() as page:
        page.goto(f"{server.url}/lab?reset&token={server.token}")
        expect(page.locator(".jp-Launcher")).to_be_visible(timeout=120_000)
        page.evaluate(_WATCH, [f"here/{run.id}", run.name])
        page.locator(".wb-place").first.wait_for(timeout=120_000)
        page.wait_for_timeout(1000 * _SETTLE_SECONDS)
        counts: collections.Counter[str] = collections.Counter()
        page.on("request", lambda request: counts.update([urllib.parse.urlparse(request.url).path]))
        page.wait_for_timeout(1000 * seconds)
    return {path: round(count / seconds, 2) for path, count in counts.most_common(6)}


def _part(server: Server, run: Run, seconds: float, onlookers: int) -> dict[str, float]:
    """One part: with so many onlookers, which come and settle before anything is counted."""
    over = threading.Event()
    answers: list[int] = []

    def look() -> None:
        answers.append(view(server, run.id, over))

    threads = [threading.Thread(target=look, daemon=True) for _ in range(onlookers)]
    for thread in threads:
        thread.start()
    time.sleep(_SETTLE_SECONDS)
    served = _server_process()
    before, began = (_cpu(served), _cpu(psutil.Process(run.state.pid)), run.state.step), time.monotonic()
    time.sleep(seconds)
    after, wall = (_cpu(served), _cpu(psutil.Process(run.state.pid)), run.state.step), time.monotonic() - began
    over.set()
    for thread in threads:
        thread.join(timeout=60)
    steps = after[2] - before[2]
    return {
        "onlookers": onlookers, "steps": steps, "trainer_cpu_ms_per_step": 1000 * (after[1] - before[1]) / steps,
        "trainer_share": (after[1] - before[1]) / wall, "server_share": (after[0] - before[0]) / wall,
        "answers_per_second_and_onlooker": sum(answers) / max(1, onlookers) / (wall + _SETTLE_SECONDS),
    }  # fmt: skip


def _compared(parts: list[dict[str, float]]) -> dict[str, Any]:
    alone, watched = ([part for part in parts if bool(part["onlookers"]) is with_] for with_ in (False, True))

    def median(parts: list[dict[str, float]], name: str) -> float:
        return round(statistics.median(part[name] for part in parts), 4)

    step = {name: median(each, "trainer_cpu_ms_per_step") for name, each in (("alone", alone), ("watched", watched))}
    pairs = [b["trainer_cpu_ms_per_step"] / a["trainer_cpu_ms_per_step"] for a, b in zip(alone, watched, strict=True)]
    return {
        "trainer_cpu_ms_per_step": step,
        "ratio_of_parts": {name: round(value, 4) for name, value in spread(pairs).items()},
        "server_share_of_a_core": {"alone": median(alone, "server_share"), "watched": median(watched, "server_share")},
        "parts": [{name: round(value, 4) for name, value in part.items()} for part in parts],
    }  # fmt: skip


def _server_process() -> psutil.Process:
    for process in psutil.Process().children():
        if "jupyterlab" in process.cmdline():
            return process
    raise AssertionError("no JupyterLab")


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def main() -> int:
    """Measure, write the JSON, print it."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.onlookers", description=__doc__)
    parser.add_argument("--onlookers", type=int, default=20, help="default 20")
    parser.add_argument("--turns", type=int, default=3, help="of A B B A; default 3")
    parser.add_argument("--seconds", type=float, default=25.0, help="of each part; default 25")
    parser.add_argument("--out", type=Path, required=True, help="JSON")
    options = parser.parse_args()
    result = {**context("onlookers"), **measure(options.onlookers, options.turns, options.seconds)}
    write_json(options.out, result)
    print(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
