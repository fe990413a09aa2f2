"""The live view in a real JupyterLab and Chromium: how soon a sample is seen, frames, bytes, memory, sizes.

``python -m tests.browser.page_times [--parts samples,knobs] [--out FILE]``
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from rich.console import Console

from tests.browser.jupyter import Notebook, chromium_page, write_notebook
from tests.browser.page_forms import knob_changes, many_runs
from tests.browser.page_writer import RECORDS_PER_SECOND, prepare
from tests.browser.servers import Server, jupyterlab
from tests.browser.steer import begin
from workbench.base.errors import WorkbenchError, unknown
from workbench.bench.result import context
from workbench.client.run_list import runs as runs_in
from workbench.store.folder import RunFolder, write_json

TARGETS = {
    "sample_to_pixel_ms_p95": 500.0, "frames_per_second_at_a_million": 20.0, "bytes_per_sample": 1000.0,
    "papermill_bytes": 300_000.0, "kernel_growth_mib": 5.0, "page_growth_mib": 5.0, "knob_ms_p95": 100.0,
    "thousand_runs_table_seconds": 1.0, "thousand_runs_table_first_seconds": 1.0,
    "quickstart_cold_curve_seconds": 20.0, "lab_usable_seconds": 3.0,
}  # fmt: skip
"""What each number has to reach: frames at least this, the others at most."""
PARTS = ("papermill", "quickstart", "samples", "knobs", "runs", "reruns", "long")
RERUNS = 20
_DRAWN = "() => document.querySelector('.wb-panel-loss .wb-area')?.plot?.data[0].length > 0"
_MOVES = "() => document.querySelector('.wb-panel-loss .wb-area')?.plot?.data[0].length > 1"
_RUN_ALL = "() => void window.jupyterapp.commands.execute('notebook:run-all-cells')"
# What uPlot has drawn, looked at before every frame: the last step of each run, when it changed.
_WATCH = """() => {
    window.seen = [];
    const last = {};
    const look = () => {
        const plot = document.querySelector(".wb-panel-loss .wb-area")?.plot;
        plot?.series.forEach((series, i) => {
            if (i === 0 || !/^train ·/.test(series.label)) return;
            const column = plot.data[i];
            let k = column.length - 1;
            while (k >= 0 && column[k] == null) k--;
            const step = k < 0 ? -1 : plot.data[0][k];
            if (step === last[i]) return;
            last[i] = step;
            window.seen.push([series.label, step, performance.timeOrigin + performance.now()]);
        });
        requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
}"""
# Zoomed to a tenth and panned by a fiftieth of it before every frame, as a wheel that turns all the time does.
_PAN = """(seconds) => new Promise((done) => {
    const plot = document.querySelector(".wb-panel-loss .wb-plot");
    const box = plot.getBoundingClientRect();
    const at = {clientX: box.left + box.width / 2, clientY: box.top + 80, bubbles: true, cancelable: true};
    const wheel = (more) => plot.dispatchEvent(new WheelEvent("wheel", {...at, ...more}));
    for (let i = 0; i < 3; i++) wheel({ctrlKey: true, deltaY: -230});
    const [frames, began] = [[], performance.now()];
    let drawn = 0;
    const u = plot.querySelector(".wb-area").plot;
    u.hooks.draw.push(() => { drawn += 1; });
    const step = (now) => {
        frames.push(now);
        const back = Math.floor((now - began) / 2000) % 2;
        wheel({shiftKey: true, deltaY: back ? -20 : 20});
        if (now - began < 1000 * seconds) requestAnimationFrame(step);
        else {
            const longest = Math.max(...frames.slice(1).map((t, i) => t - frames[i]));
            done({seconds: (now - began) / 1000, frames: frames.length, drawn, longest});
        }
    };
    requestAnimationFrame(step);
})"""


def main() -> int:
    """Measure the chosen parts and write them down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="of samples that are timed")
    parser.add_argument("--records", type=int, default=1_000_000, help="of the long run")
    parser.add_argument("--parts", default=",".join(PARTS), help="what to measure (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("out/bench/page.json"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="workbench-page-") as workspace:
        home = Path(workspace)
        measured = measure(home, options.parts.split(","), options.seconds, options.records)
    where = context("page", ("jupyterlab", "ipykernel", "anywidget", "ipywidgets"))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    # Processes that wanted to run in the last minute: above the number of cores, times are those of a busy machine.
    load = round(os.getloadavg()[0], 1)
    write_json(options.out, {**where, "load": load, "targets": TARGETS, **measured})
    console = Console()
    for name, value in measured.items():
        if isinstance(value, int | float):
            console.print(f"{name}: {value:g}" + (f" (target {TARGETS[name]:g})" if name in TARGETS else ""))
    console.print(f"saved {options.out}")
    return 0


def measure(home: Path, parts: Sequence[str], seconds: float, records: int) -> dict[str, Any]:
    """These measurements, one after the other in one JupyterLab.

    Raises:
        WorkbenchError: a part that does not exist.
    """
    for part in parts:
        if part not in PARTS:
            raise WorkbenchError(unknown("part", part, PARTS))
    runs = home / "runs"
    runs.mkdir()
    result: dict[str, Any] = {"papermill_bytes": papermill_bytes(home)} if "papermill" in parts else {}
    if "quickstart" in parts:
        result |= cold_quickstart(home)
    (home / "jupyter").mkdir()
    with jupyterlab(home / "jupyter", runs) as server, chromium_page() as page:
        if "samples" in parts:
            result |= short_runs(page, server, runs, seconds)
        if "knobs" in parts:
            result |= knob_changes(page, server)
        if "runs" in parts:
            result |= many_runs(page, server, home / "many")
        if "reruns" in parts:
            result |= reruns(page, server, runs)
        if "long" in parts:
            result |= long_run(page, server, runs, records)
    return result


def cold_quickstart(home: Path, times: int = 3) -> dict[str, Any]:
    """The quickstart, all cells at once, where nothing is cached: seconds until its curve moves, the longest."""
    seconds = []
    for number in range(times):
        place = home / f"cold-{number}"
        place.mkdir()
        # Of torch's compiler, tokenizers, prepared text and what is measured once.
        with (
            jupyterlab(place, place / "runs", WORKBENCH_CACHE=str(place / "cache")) as server, chromium_page() as page,
        ):  # fmt: skip
            Notebook(page, server, "00_quickstart.ipynb").hide_sidebar()
            began = time.monotonic()
            page.evaluate(_RUN_ALL)
            page.wait_for_function(_MOVES)
            seconds.append(round(time.monotonic() - began, 2))
            for run in runs_in(server.runs):
                run.stop()
    return {"quickstart_cold_curve_seconds": max(seconds), "quickstart_cold_curve_each": seconds}


def short_runs(page: Any, server: Server, runs: Path, seconds: float) -> dict[str, Any]:
    """Two runs, four plots, ten samples a second each: time until a sample is seen, and what it costs on the wire."""
    with writing(runs, ["short-a", "short-b"], seconds + 60) as logs:
        began = _watch(page, server, "short.ipynb", runs, logs)
        first = time.monotonic() - began
        page.wait_for_timeout(3000)
        traffic = _count_bytes(page)
        page.evaluate(_WATCH)
        page.wait_for_timeout(1000 * seconds)
        seen = page.evaluate("() => window.seen")
        received = traffic["bytes"]
    delays = np.concatenate([_delays(log, [s for s in seen if s[0].endswith(name)]) for name, log in logs.items()])
    quantiles = {f"sample_to_pixel_ms_p{q}": round(float(np.percentile(delays, q)), 1) for q in (50, 95, 99)}
    samples = len(logs) * RECORDS_PER_SECOND * seconds
    return {
        "first_plot_seconds": round(first, 2), **quantiles, "samples_timed": len(delays),
        "bytes_per_sample": round(received / samples), "messages_per_second": round(traffic["messages"] / seconds, 1),
    }  # fmt: skip


def long_run(page: Any, server: Server, runs: Path, records: int) -> dict[str, Any]:
    """A run of a million records that goes on while somebody pans: time to its first plot, to all of it, frames."""
    with writing(runs, ["long"], 600, records) as logs:
        began = _watch(page, server, "long.ipynb", runs, logs)
        first = time.monotonic() - began
        # A sample has some hundred points; the whole is drawn with two for each pixel.
        _type_cell(page, "import time\nwhile view.feed.tracks[0].loading: time.sleep(0.1)\nprint('all of it')")
        page.locator(".jp-OutputArea-output", has_text="all of it").wait_for(timeout=600_000)
        whole = time.monotonic() - began
        page.wait_for_timeout(2000)
        panned = page.evaluate(_PAN, 8)
    frames = panned["drawn"] / panned["seconds"]
    return {
        "long_run_records": records, "long_run_first_plot_seconds": round(first, 2),
        "long_run_all_read_seconds": round(whole, 2), "frames_per_second_at_a_million": round(frames, 1),
        "longest_frame_ms": round(panned["longest"], 1),
    }  # fmt: skip


def reruns(page: Any, server: Server, runs: Path) -> dict[str, Any]:
    """The cell that shows the view, run twenty times over: what stays behind in the kernel and in the page."""
    with writing(runs, ["again"], 600) as logs:
        # The picture for saved notebooks is drawn after a minute: what matplotlib keeps comes once and is no growth.
        draw = f"for _ in range(4): summary_html([wb.Run('again', {str(runs)!r}).view()])"
        first = f"import workbench as wb\nfrom workbench.plots.static import summary_html\n{draw}"
        plain = "import ipywidgets; ipywidgets.HTML('a widget of ipywidgets, for comparison')"
        write_notebook(server.root / "again.ipynb", [first, _watch_cell(runs, logs), plain])
        notebook = Notebook(page, server, "again.ipynb")
        notebook.hide_sidebar()
        notebook.run(0)
        protocol = page.context.new_cdp_session(page)
        readings = []
        # The first ones fill caches of JupyterLab and of the allocator, which is no growth either.
        for index, count in ((1, 5), (1, RERUNS), (2, 5), (2, RERUNS)):
            for _ in range(count):
                notebook.run(index)
                if index == 1:
                    page.wait_for_function(_DRAWN)
            readings.append(_memory(protocol, page))
    before, after, plain_before, plain_after = readings
    return {
        "reruns": RERUNS, "kernel_growth_mib": round(after[0] - before[0], 2), "kernel_mib": round(after[0], 1),
        "page_growth_mib": round(after[1] - before[1], 2), "page_heap_mib": round(after[1], 1),
        "page_growth_of_a_plain_widget_mib": round(plain_after[1] - plain_before[1], 2),
    }  # fmt: skip


def papermill_bytes(home: Path) -> int:
    """Size of an executed notebook that watched a run to its end."""
    folder = RunFolder(home / "runs" / "ended")
    prepare(folder, "ended", 2000)
    subprocess.run(
        [sys.executable, "-m", "tests.browser.page_writer", str(folder.path), str(home / "ended.log"), "2000", "1"],
        check=True,
    )
    source, target = home / "ended.ipynb", home / "executed.ipynb"
    write_notebook(source, ["import workbench as wb", _watch_cell(home / "runs", {"ended": Path()})])
    command = [sys.executable, "-m", "papermill", str(source), str(target), "-k", "python3"]
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    return target.stat().st_size


@contextmanager
def writing(runs: Path, names: list[str], seconds: float, records: int = 0) -> Iterator[dict[str, Path]]:
    """Processes that write to these runs; yields the log of each by name."""
    logs, processes = {}, []
    try:
        for name in names:
            folder, logs[name] = RunFolder(runs / name), runs.parent / f"{name}.log"
            prepare(folder, name, records)
            command = [sys.executable, "-m", "tests.browser.page_writer"]
            arguments = [str(folder.path), str(logs[name]), str(records), str(seconds)]
            processes.append(subprocess.Popen([*command, *arguments], stdin=subprocess.DEVNULL))
        time.sleep(2.0)
        yield logs
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _watch(page: Any, server: Server, name: str, runs: Path, logs: dict[str, Path]) -> float:
    """Show the view of runs in a notebook of that name, until a plot is drawn; returns when its cell was run."""
    write_notebook(server.root / name, ["import workbench as wb", _watch_cell(runs, logs)])
    notebook = Notebook(page, server, name)
    notebook.hide_sidebar()
    notebook.run(0)
    began = time.monotonic()
    begin(notebook, 1)
    page.wait_for_function(_DRAWN)
    return began


def _watch_cell(runs: Path, logs: dict[str, Path]) -> str:
    watched = ", ".join(f"wb.Run({name!r}, {str(runs)!r})" for name in logs)
    return f"from workbench.jupyter.watch.monitor import Monitor\nview = Monitor([{watched}])\nview"


def _type_cell(page: Any, source: str) -> None:
    """Replace the first cell's source and run it."""
    page.locator(".jp-CodeCell").nth(0).locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(source)
    page.keyboard.press("Control+Enter")


def _count_bytes(page: Any) -> dict[str, int]:
    """Counts what arrives over the page's web sockets from now on, Jupyter's own headers included."""
    traffic = {"bytes": 0, "messages": 0}
    protocol = page.context.new_cdp_session(page)

    def received(event: dict[str, Any]) -> None:
        frame = event["response"]
        # Binary frames come as base64.
        traffic["bytes"] += len(frame["payloadData"]) * 3 // 4 if frame["opcode"] == 2 else len(frame["payloadData"])
        traffic["messages"] += 1

    protocol.on("Network.webSocketFrameReceived", received)
    protocol.send("Network.enable")
    return traffic


def _delays(log: Path, seen: list[list[Any]]) -> np.ndarray:
    """Milliseconds from handing over each sample to the first frame that had it, (N,)."""
    written = [json.loads(line) for line in log.read_text().splitlines() if line.endswith("]")]
    steps, times = np.array([step for _, step, _ in seen]), np.array([at for _, _, at in seen])
    delays = []
    for step, at in written:
        # What was written before anybody looked, and what has not arrived, tells nothing.
        place = int(np.searchsorted(steps, step))
        if len(steps) and steps[0] < step <= steps[-1]:
            delays.append(times[place] - 1000 * at)
    return np.array(delays)


def _memory(protocol: Any, page: Any) -> tuple[float, float]:
    """MiB of the newest kernel (collected first) and of the page's heap."""
    _type_cell(page, "import gc; gc.collect(); print('collected')")
    page.wait_for_timeout(3000)
    for _ in range(3):
        protocol.send("HeapProfiler.collectGarbage")
    heap = protocol.send("Runtime.getHeapUsage")["usedSize"]
    kernels = [p for p in psutil.Process().children(recursive=True) if "ipykernel" in " ".join(p.cmdline())]
    newest = max(kernels, key=lambda process: process.create_time())
    return newest.memory_info().rss / 2**20, heap / 2**20


if __name__ == "__main__":
    sys.exit(main())
