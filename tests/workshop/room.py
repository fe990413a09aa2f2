"""Twenty learners on one machine: headless kernels with owners of their own launch tiny runs, five pages have a board.

    python -m tests.workshop.room docs/results/workshop.json [LEARNERS [RUNS OF EACH]]

The pages are JupyterLabs in Chromium, on the same two cores, which in a room would be the learners' own.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from jupyter_client.manager import KernelManager
from playwright.sync_api import expect

from tests.browser.jupyter import Notebook, chromium_page, write_notebook
from tests.browser.servers import Server, jupyterlab
from tests.corpus import write_corpus
from tests.tiny_runs import tiny_recipe, wait_until
from workbench.client.listing import Listing
from workbench.launchers.launched import Launched
from workbench.launchers.queue.settings import write_settings
from workbench.recipes.recipe import Recipe
from workbench.store.folder import RunFolder
from workbench.store.state import FINAL, read_state

PAGES, CORES, STEPS = 5, 2, 300
LIMITS = {"cores": CORES, "running_per_owner": 1, "waiting_per_owner": 5, "seconds_per_run": 180}
Row = dict[str, Any]


def room_recipe(corpus: Path) -> Recipe:
    """Steps, not seconds: on a machine that others use as well, each run is the same work."""
    return tiny_recipe(corpus).with_(budget={"amount": STEPS, "unit": "steps", "evaluations": 1})


def hold(folder: Path, recipe: Recipe, learners: int = 20, each: int = 2, patience: float = 1500.0) -> dict[str, Any]:
    """Let everybody launch at once; returns what was measured once all runs have ended.

    Args:
        folder: for runs and queue. each: runs of a learner. patience: seconds for any part of it.
    """
    runs, queue, path = folder / "runs", folder / "queue", folder / "recipe.json"
    runs.mkdir(parents=True)
    queue.mkdir()
    write_settings(queue, LIMITS)
    recipe.save(path)
    room = {"WORKBENCH_QUEUE": str(queue), "WORKBENCH_REPORT": "off"}
    with ExitStack() as stack:
        server = stack.enter_context(jupyterlab(folder / "home", runs, **room))
        stack.enter_context(_pages(server, patience))
        people = [_learner(stack, folder, path, number, {**room, "WORKBENCH_RUNS": str(runs)})
                  for number in range(learners)]  # fmt: skip
        for person in people:
            _done(
                person, person.execute("import sys, workbench as wb; recipe = wb.Recipe.load('recipe.json')"), patience
            )
        spent = stack.enter_context(_spending(queue))
        began = time.time()
        asked = [(person, person.execute(f"for _ in range({each}): wb.launch(recipe, say=None)")) for person in people]
        for person, message in asked:
            _done(person, message, patience)
        wait_until(lambda: _ended(runs) == learners * each, patience, "the end of all runs")
        spent.look()
        return _measured(runs, learners, each, began, spent)


def _learner(stack: ExitStack, folder: Path, recipe: Path, number: int, more: dict[str, str]) -> Any:
    """Start a kernel without a page; its client."""
    environment = {**os.environ, **more, "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
                   "IPYTHONDIR": str(folder / "ipython"), "WORKBENCH_OWNER": f"learner {number + 1}"}  # fmt: skip
    manager = KernelManager(connection_file=str(folder / f"kernel-learner-{number}.json"))
    manager.start_kernel(cwd=str(folder), env=environment)
    stack.callback(manager.shutdown_kernel, now=True)
    client = manager.blocking_client()
    client.start_channels()
    stack.callback(client.stop_channels)
    return client


def _done(client: Any, message: str, patience: float) -> None:
    while (reply := client.get_shell_msg(timeout=patience))["parent_header"].get("msg_id") != message:
        pass
    assert reply["content"]["status"] == "ok", reply["content"]


@contextmanager
def _pages(server: Server, patience: float) -> Iterator[None]:
    """JupyterLabs that show the board, each with a kernel; in a thread, which Playwright's loop keeps to itself."""
    write_notebook(server.root / "board.ipynb", ["import workbench as wb\nwb.Board()"])
    expect.set_options(timeout=300_000)
    shown, over, failed = threading.Event(), threading.Event(), []

    def show() -> None:
        try:
            with chromium_page() as first:
                browser = first.context.browser
                assert browser is not None
                pages = [browser.new_context().new_page() for _ in range(PAGES)]
                for number, page in enumerate(pages):
                    page.set_default_timeout(300_000)
                    (server.root / f"board-{number}.ipynb").write_bytes((server.root / "board.ipynb").read_bytes())
                    Notebook(page, server, f"board-{number}.ipynb").run(0, timeout=300)
                    page.locator(".wb-board").wait_for()
                shown.set()
                over.wait()
                for page in pages:
                    page.get_by_role("region", name="owners and their runs").wait_for()
        except Exception as error:
            failed.append(error)
            shown.set()

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    assert shown.wait(patience), "the pages did not come"
    assert not failed, failed
    try:
        yield
    finally:
        over.set()
        thread.join(120)
    assert not failed, failed


class _Spent:
    """Core seconds of the room's processes, all of which have its queue in their environment; the browser has not.

    Attributes:
        until: (Unix seconds, core seconds of all of them), once a second.
    """

    def __init__(self, queue: Path) -> None:
        self._queue = str(queue)
        self._parts: dict[int, str] = {}
        self._spent: dict[int, tuple[float, float]] = {}
        self.until: list[tuple[float, float]] = []
        self.look()

    def look(self) -> None:
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.pid not in self._parts:
                    inside = process.environ().get("WORKBENCH_QUEUE") == self._queue
                    self._parts[process.pid] = _part(" ".join(process.cmdline())) if inside else ""
                if not self._parts[process.pid]:
                    continue
                now = sum(process.cpu_times()[:2])
                # What was spent before the launches does not count; of later processes all does.
                before = self._spent[process.pid][0] if process.pid in self._spent else (0.0 if self.until else now)
                self._spent[process.pid] = (before, now)
        self.until.append((time.time(), sum(self.by_part().values())))

    def by_part(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for pid, (before, now) in self._spent.items():
            found[self._parts[pid]] = found.get(self._parts[pid], 0.0) + now - before
        return found


def _part(command: str) -> str:
    parts = {"kernel-learner": "learners", "ipykernel": "boards", "jupyterlab": "server"}
    return next((part for mark, part in parts.items() if mark in command), "runs")


@contextmanager
def _spending(queue: Path) -> Iterator[_Spent]:
    spent, over = _Spent(queue), threading.Event()

    def follow() -> None:
        while not over.wait(1.0):
            spent.look()

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield spent
    finally:
        over.set()
        thread.join()


def _measured(runs: Path, learners: int, each: int, began: float, spent: _Spent) -> dict[str, Any]:
    rows: list[Row] = [dict(row) for row in Listing(runs).look().rows]
    for row in rows:
        row["launched"] = Launched.read(RunFolder(runs / row["id"])).time
        row["started"] = row["started"] or float("inf")
    rows.sort(key=lambda row: row["started"])
    first: dict[str, Row] = {}
    for row in rows:
        first.setdefault(row["owner"], row)
    last = max(row["started"] for row in first.values())
    waited = sorted(row["started"] - row["launched"] for row in first.values())
    before = [sum(one["launched"] < row["started"] < one["started"] for row in rows) for one in first.values()]
    statuses = {status: sum(row["status"] == status for row in rows) for status in {row["status"] for row in rows}}
    until_last = next((core for at, core in spent.until if at >= last), spent.until[-1][1])
    seconds, parts = spent.until[-1][0] - began, spent.by_part()
    return {
        "learners": learners, "runs": len(rows), "pages": PAGES, "limits": LIMITS,
        "second_before_last_first": sum(row["started"] < last for row in rows) - (len(first) - 1),
        "turns_before_first_curve": {"median": statistics.median(before), "most": max(before)},
        "first_curve_seconds": {"median": round(statistics.median(waited), 1), "longest": round(waited[-1], 1)},
        "last_first_curve": {
            "seconds_after_launch": round(last - began, 1), "core_seconds_of_the_room": round(until_last, 1),
            "seconds_on_free_cores": round(until_last / CORES, 1),
            "share_of_the_cores": round(until_last / CORES / (last - began), 3),
        },
        "all_runs_seconds": round(seconds, 1), "core_seconds_of_a_run": round(parts["runs"] / len(rows), 2),
        "statuses": statuses, "without_a_final_word": learners * each - sum(statuses.get(each, 0) for each in FINAL),
        "share_of_a_core": {"server": round(parts["server"] / seconds, 3),
                            "kernel of a board": round(parts["boards"] / PAGES / seconds, 3)},
    }  # fmt: skip


def _ended(runs: Path) -> int:
    return sum(
        read_state(RunFolder(path)).status in FINAL for path in runs.glob("2*") if (path / "state.json").exists()
    )


def main() -> None:
    """Hold the room in a scratch folder, and write what was measured to the file named."""
    with tempfile.TemporaryDirectory() as aside:
        os.environ["WORKBENCH_CACHE"] = str(Path(aside, "cache"))
        recipe = room_recipe(write_corpus(Path(aside, "corpus")))
        load = os.getloadavg()[0]
        found = hold(Path(aside, "room"), recipe, *map(int, sys.argv[2:]))
    machine = {"cores": os.cpu_count(), "processor": platform.processor() or platform.machine(),
               "memory_gib": round(psutil.virtual_memory().total / 2**30, 1), "load_before": round(load, 1),
               "python": platform.python_version()}  # fmt: skip
    words = f"tiny, {STEPS} steps on one thread"
    shown = {"date": time.strftime("%Y-%m-%d"), "machine": machine, "recipe": words, **found}
    Path(sys.argv[1]).write_text(json.dumps(shown, indent=1) + "\n")
    print(json.dumps(shown, indent=1))


if __name__ == "__main__":
    main()
