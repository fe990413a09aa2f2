"""Runs written to disk for a view of many at once, and what is read of the view."""

from __future__ import annotations

import math
from typing import Any

from playwright.sync_api import Locator, expect

from tests.browser.servers import Server
from tests.jupyter.live import run_folder
from workbench.store.folder import RunFolder, write_json
from workbench.store.state import write_state
from workbench.telemetry.streams import TelemetryWriter

RECORDS = 400
STEPS = {"amount": 2000, "unit": "steps"}
SPIKES = (137, 260)
SMALL, LARGE = {"width": 1280, "height": 720}, {"width": 1440, "height": 900}


def write_run(server: Server, number: int, budget: dict[str, Any] = STEPS) -> RunFolder:
    """One that is alive; its loss jumps to 14.6 in two single steps."""
    folder = run_folder(server.runs / f"many-{number}", name=f"run {number}", budget=budget)
    writer = TelemetryWriter(folder.telemetry, flush_seconds=60)
    writer.event(60, "memory", "kept: 8 rows per micro-batch, 1.2 GiB")
    for step in range(1, RECORDS + 1):
        loss = 14.6 if step in SPIKES else 6.0 + 0.1 * number + 3 / (1 + step / 20) + 0.1 * math.sin(step)
        heldout = {"heldout_loss": loss} if step % 100 == 0 else {}
        writer.scalars(step, step / 4, 4096 * step, loss=loss, lr=1e-3, tokens_per_second=9000.0 + step % 7, **heldout)
        if step % 20 == 0:
            writer.layers(step, state=[0, step // 20 % 2, 0])
    writer.close()
    write_json(folder.evaluations, {"score": {"kind": "masked-only"}, "unigram_entropy": 6.9, "bigram_entropy": 5.9})
    write_state(folder, step=RECORDS, progress=0.2, seconds=100.0, loss=6.2, heldout_loss=6.1, tokens_per_second=9000.0)
    return folder


def drawn(view: Locator) -> Locator:
    """The view once its curves are there, at the top of the notebook."""
    expect(view.locator(".wb-panel-loss .wb-area canvas")).to_be_visible()
    expect(view.locator(".wb-run")).to_have_count(6)
    view.evaluate("view => view.scrollIntoView()")
    return view


def box(part: Locator) -> dict[str, float]:
    """Return where it stands in the window."""
    found = part.bounding_box()
    assert found is not None
    return dict(found)


def boxes(view: Locator) -> list[dict[str, float]]:
    """Return the boxes of the table and of the loss plot."""
    return [box(view.locator(part)) for part in (".wb-runs", ".wb-panel-loss .wb-area")]


def axis(view: Locator) -> tuple[float, float]:
    """Ends of the loss axis as it is drawn."""
    low, high = view.locator(".wb-panel-loss .wb-area").evaluate("({plot: {scales: {y}}}) => [y.min, y.max]")
    return float(low), float(high)


def hover(view: Locator, share: float = 0.5) -> Locator:
    """Puts the pointer into the plot of the loss; what a reading says there."""
    over = box(view.locator(".wb-panel-loss .u-over"))
    view.page.mouse.move(over["x"] + share * over["width"], over["y"] + 0.9 * over["height"])
    readout = view.locator(".wb-panel-loss .wb-readout")
    expect(readout).to_be_visible()
    return readout


def in_sight(part: Locator, table: Locator) -> bool:
    """Return True if it is seen whole within the table, below its head."""
    here, around, head = box(part), box(table), box(table.locator("thead"))
    right, bottom = here["x"] + here["width"], here["y"] + here["height"]
    return head["y"] + head["height"] <= here["y"] and bottom <= around["y"] + around["height"] and (
        right <= around["x"] + around["width"])  # fmt: skip
