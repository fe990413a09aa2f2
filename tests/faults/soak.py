"""``python -m tests.faults.soak [--minutes 120] --out FILE``: does memory stay flat while a long run is watched?

A real run at nice 10, a JupyterLab whose kernel shows it live in a page of Chromium, and a second viewer who asks the
server as a page without a kernel does. Once a minute the resident memory of each process, and the page's heap after a
collection, go into ``FILE.csv``; the JSON holds their slopes per hour, without the first tenth.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from playwright.sync_api import expect

from tests.browser.jupyter import Notebook, chromium_page, write_notebook
from tests.browser.servers import Server, jupyterlab
from tests.tiny_runs import wait_until, yield_to_others
from workbench.bench.result import context
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.recipes import presets
from workbench.store.folder import write_json

PLACES = ("trainer_mib", "kernel_mib", "server_mib", "page_process_mib", "page_heap_mib")


def view(server: Server, run: str, over: threading.Event, every: float = 0.3) -> int:
    """Ask for news of a run as a page whose kernel is gone does, and for all runs every two seconds.

    Returns:
        How many answers came.
    """
    since, listed, answers, due = "", 0.0, 0, time.monotonic()
    while not over.wait(max(0.0, due - time.monotonic())):
        due = max(due + every, time.monotonic())
        query = urllib.parse.urlencode({"run": f"here/{run}", **({"since": since} if since else {})})
        message = _asked(server, f"telemetry?{query}")
        since = json.loads(message[4 : 4 + int.from_bytes(message[:4], "little")])["cursor"]
        if time.monotonic() - listed > 2:
            _asked(server, "runs")
            listed = time.monotonic()
        answers += 1
    return answers


def _asked(server: Server, path: str) -> bytes:
    request = urllib.request.Request(
        f"{server.url}/workbench/api/{path}", headers={"Authorization": f"token {server.token}"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        content: bytes = response.read()
    return content


def measure(minutes: float, table: Path) -> dict[str, Any]:
    """Watch a run for so long, with a row a minute in ``table``; return slopes, first and last values."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        home = Path(scratch)
        folders = {name: str(home / name.lower()) for name in ("WORKBENCH_CACHE", "WORKBENCH_QUEUE", "WORKBENCH_RUNS")}
        os.environ.update(folders | {"OMP_NUM_THREADS": "1"})
        runs = Path(folders["WORKBENCH_RUNS"])
        # Small, so that two hours in the time others leave are many records.
        small = {"architecture": {"layers": 2, "width": 32}, "data": {"sequence_length": 32, "batch_size": 4}}
        run = launch(presets.quickstart().with_(budget="10_000_000 steps", **small), runs_dir=runs, say=None)
        try:
            wait_until(lambda: run.status == "running" and run.state.step > 0, 300, "the first step")
            yield_to_others(run)
            with jupyterlab(home / "lab", runs) as server, chromium_page() as page:
                rows = _watched(server, page, run, minutes, table)
        finally:
            run.stop()
            run.wait_blocking()
    return summary(rows)


def _watched(server: Server, page: Any, run: Run, minutes: float, table: Path) -> list[dict[str, float]]:
    watch = f"import workbench as wb\nview = wb.Run({run.id!r}, {str(run.folder.path.parent)!r}).watch()"
    write_notebook(server.root / "soak.ipynb", [watch])
    Notebook(page, server, "soak.ipynb").run(0)
    page.locator(".wb-place").first.wait_for()
    protocol = page.context.new_cdp_session(page)
    over, rows = threading.Event(), []
    other = threading.Thread(target=view, args=(server, run.id, over), daemon=True)
    other.start()
    began = time.monotonic()
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["minutes", "step", *PLACES])
        writer.writeheader()
        while (spent := (time.monotonic() - began) / 60) < minutes:
            assert other.is_alive(), "the second viewer has ended"
            rows.append({"minutes": round(spent, 2), "step": run.state.step, **_memory(protocol, run)})
            writer.writerow(rows[-1])
            file.flush()
            # Not a sleep: the browser's events are heard meanwhile.
            page.wait_for_timeout(60_000)
    over.set()
    assert run.status == "running"
    return rows


def _memory(protocol: Any, run: Run) -> dict[str, float]:
    """MiB of the trainer, of the kernel, of the server, of the page's process and of its heap."""
    for _ in range(3):
        protocol.send("HeapProfiler.collectGarbage")
    heap = protocol.send("Runtime.getHeapUsage")["usedSize"]
    found: dict[str, list[int]] = {"ipykernel_launcher": [], "jupyterlab": [], "--type=renderer": []}
    for process in psutil.Process().children(recursive=True):
        command = " ".join(process.cmdline())
        for part, sizes in found.items():
            if part in command:
                sizes.append(process.memory_info().rss)
    sizes = [psutil.Process(run.state.pid).memory_info().rss, *(max(each) for each in found.values()), heap]
    return {name: round(size / 2**20, 2) for name, size in zip(PLACES, sizes, strict=True)}


def summary(rows: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Return, for each place, its first and last MiB and the slope of a line through all but the first tenth."""
    settled = [row for row in rows if row["minutes"] >= rows[-1]["minutes"] / 10]
    hours = [row["minutes"] / 60 for row in settled]
    places = {
        name: {
            "mib_per_hour": round(float(np.polyfit(hours, [row[name] for row in settled], 1)[0]), 2),
            "mib_first": settled[0][name], "mib_last": settled[-1][name],
            "mib_max": max(row[name] for row in settled),
        }
        for name in PLACES
    }  # fmt: skip
    return {"minutes": rows[-1]["minutes"], "steps": rows[-1]["step"], "readings": len(rows), "places": places}


def main() -> int:
    """Soak, write the JSON, print it."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=120.0, help="default 120")
    parser.add_argument("--out", type=Path, required=True, help="JSON; the readings go beside it, as CSV")
    options = parser.parse_args()
    expect.set_options(timeout=120_000)
    where = context("soak")
    result = {**where, **measure(options.minutes, options.out.with_suffix(".csv"))}
    write_json(options.out, result)
    print(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
