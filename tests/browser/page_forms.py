"""How soon the Lab answers: a knob that is changed, and a table of a thousand runs that is opened."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from tests.browser.jupyter import Notebook, write_notebook
from tests.browser.servers import Server
from workbench import presets
from workbench.store.folder import RunFolder, write_json
from workbench.store.state import write_state

RUNS = 1000
CHANGES = {
    "batch size": ("8", "16", "24", "32"), "layers": ("3", "6", "8", "5"), "width": ("128", "192", "320", "384"),
}  # fmt: skip
"""Label of a knob -> values that it gets in turn."""
_OPEN = """() => {
    for (const toggle of document.querySelectorAll(".lab-composer .lab-toggle[aria-expanded=false]")) toggle.click();
}"""
# From the change of a box until the frame after the verdict on another recipe was painted; its hash is in the markup.
_CHANGE = r"""([label, text]) => new Promise((done, fail) => {
    const verdict = document.querySelector(".lab-composer .lab-verdict");
    // A unit may follow the name.
    const named = (one) => one.checkVisibility() && one.textContent.trim().startsWith(label);
    const found = [...document.querySelectorAll(".lab-composer .lab-knob label")].find(named);
    const box = found?.closest(".lab-knob").querySelector("input");
    if (!box) return fail(new Error(`no knob is called ${label}`));
    const before = verdict.innerHTML;
    box.focus();
    box.value = text;
    const began = performance.now();
    const watcher = new MutationObserver(() => {
        if (verdict.innerHTML === before) return;
        watcher.disconnect();
        requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
    });
    watcher.observe(verdict, {childList: true, subtree: true, characterData: true});
    box.dispatchEvent(new Event("input", {bubbles: true}));
    box.dispatchEvent(new Event("change", {bubbles: true}));
    box.blur();
})"""
# From the key that runs a cell until a table that was not there shows all rows it can.
TABLE_SHOWN = """() => {
    const old = new Set(document.querySelectorAll(".lab-runs"));
    document.addEventListener("keydown", function pressed(event) {
        if (event.key !== "Enter") return;
        document.removeEventListener("keydown", pressed, true);
        const began = performance.now();
        const look = () => {
            const tables = [...document.querySelectorAll(".lab-runs")].filter((table) => !old.has(table));
            const full = tables.some((table) => /1,000/.test(table.querySelector(".lab-count")?.textContent));
            if (full) window.tableShown = performance.now() - began;
            else requestAnimationFrame(look);
        };
        look();
    }, true);
}"""


def knob_changes(page: Any, server: Server, rounds: int = 6) -> dict[str, Any]:
    """Knobs of a Lab, changed one after the other: milliseconds until the page shows the verdict on each."""
    write_notebook(server.root / "knobs.ipynb", ["import workbench as wb", "wb.Lab()"])
    notebook = Notebook(page, server, "knobs.ipynb")
    notebook.hide_sidebar()
    notebook.run(0)
    began = time.perf_counter()
    notebook.run(1)
    # Usable: every choice can be changed, and the recipe launched. The forecast measures the machine once, which takes
    # all of a core for a while, and the verdict waits for it.
    page.locator(".lab-composer .lab-launch:enabled").wait_for()
    usable = time.perf_counter() - began
    page.locator(".lab-composer .lab-verdict .lab-good").wait_for(timeout=120_000)
    judged = time.perf_counter() - began
    page.evaluate(_OPEN)
    page.locator(".lab-forecast", has_text="tokens/s").wait_for(timeout=120_000)
    page.wait_for_timeout(3000)
    times = []
    for turn in range(rounds):
        for label, values in CHANGES.items():
            times.append(page.evaluate(_CHANGE, [label, values[turn % len(values)]]))
            # As fast as somebody types, so that forecasts are under way meanwhile.
            page.wait_for_timeout(300)
    found = {f"knob_ms_p{q}": round(float(np.percentile(times, q)), 1) for q in (50, 95)}
    seconds = {"lab_usable_seconds": round(usable, 2), "lab_first_verdict_seconds": round(judged, 2)}
    return found | {"knob_changes": len(times)} | seconds


def many_runs(page: Any, server: Server, root: Path) -> dict[str, Any]:
    """The table of a thousand runs, alone and in the Lab: seconds from the key to all rows, the second time of each."""
    _write_runs(root)
    imports = "from workbench.jupyter.lab.lab import Lab\nfrom workbench.jupyter.runs.runs_table import RunsTable"
    where = repr(str(root))
    write_notebook(server.root / "many.ipynb", [imports, f"RunsTable({where})", f"Lab(runs_dir={where})"])
    notebook = Notebook(page, server, "many.ipynb")
    notebook.hide_sidebar()
    notebook.run(0)
    seconds: dict[str, list[float]] = {"table": [], "lab": []}
    for index, name in ((1, "table"), (2, "lab"), (1, "table"), (2, "lab"), (1, "table"), (2, "lab")):
        page.evaluate(TABLE_SHOWN)
        notebook.run(index)
        page.wait_for_function("window.tableShown")
        seconds[name].append(page.evaluate("window.tableShown") / 1000)
        page.evaluate("delete window.tableShown")
    cold = {f"thousand_runs_{name}_first_seconds": round(times[0], 2) for name, times in seconds.items()}
    warm = {f"thousand_runs_{name}_seconds": round(float(np.median(times[1:])), 2) for name, times in seconds.items()}
    return cold | warm


def _write_runs(root: Path) -> None:
    recipe = presets.baseline().to_dict()
    for number in range(RUNS):
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(1_760_000_000 + 3600 * number))
        folder = RunFolder(root / f"{stamp}-run-{number:06x}-0000")
        folder.path.mkdir(parents=True)
        write_json(folder.recipe, recipe | {"name": f"run {number}"}, durable=False)
        ended = {"status": "finished", "step": 1000, "progress": 1.0, "loss": 4.0, "heldout_loss": 3 + number / RUNS}
        write_state(folder, durable=False, **ended, tokens=4_096_000, seconds=250.0)
