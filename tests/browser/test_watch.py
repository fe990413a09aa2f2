"""The live view as a user looks into a long run: zoom, keys, axes, table, files, a Plotly figure below."""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as ElementTree
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import RESULTS, SIZE
from tests.browser.jupyter import Notebook, write_notebook
from tests.browser.looks import soon, still
from tests.browser.servers import Server
from tests.jupyter.live import run_folder
from workbench.store.folder import RunFolder
from workbench.telemetry.streams import TelemetryWriter

pytestmark = pytest.mark.browser
RECORDS = 12_000
SPIKE = 7_003
"""A step whose loss stands out, and whose neighbours a page of the whole run does not hold."""


@pytest.fixture(scope="module")
def long_run(server: Server) -> RunFolder:
    """A run that is alive, and has recorded more than a page holds."""
    folder = run_folder(server.runs / "long", name="a long run", budget={"amount": 20_000, "unit": "steps"})
    writer = TelemetryWriter(folder.telemetry, flush_seconds=60)
    writer.event(4000, "knob", "optimizer.lr 0.001 -> 0.0005", path="optimizer.lr", value=0.0005)
    for step in range(1, RECORDS + 1):
        loss = 9.0 if step == SPIKE else 4.0 + 3.0 / (1 + step / 500) + 0.1 * (step * 7919 % 13) / 13
        parts = {"data_ms": 2.0, "forward_ms": 90.0, "backward_ms": 160.0, "optimizer_ms": 20.0, "telemetry_ms": 1.0}
        rates = {"lr": 1e-3, "tokens_per_second": 15_000.0 + step % 17, "mfu": 0.2}
        writer.scalars(step, step / 4, 4096 * step, loss=loss, flops=3e11 * step, **parts, **rates)
        if step % 100 == 0:
            writer.layers(step, state=[0, step // 100 % 2], grad_norm=[1.0, 2.0])
    writer.close()
    return folder


@pytest.mark.extended
def test_a_long_run(page: Page, server: Server, long_run: RunFolder) -> None:
    """One kernel for all of it."""
    view = shown(page, server, long_run)
    zooming_into_a_long_run_shows_every_record(view)
    view.get_by_role("button", name="Steps", exact=True).click()
    plots_leave_as_table_files_and_figure(view)


def shown(page: Page, server: Server, long_run: RunFolder) -> Locator:
    """Its live view, with its curve drawn."""
    watch = f"import workbench as wb\nview = wb.Run({long_run.id!r}, {str(long_run.path.parent)!r}).watch()"
    write_notebook(server.root / "watch.ipynb", [watch])
    notebook = Notebook(page, server, "watch.ipynb")
    notebook.hide_sidebar()
    # What a test before has chosen is remembered by the browser, which they share.
    page.evaluate("localStorage.removeItem('workbench.watch.layout')")
    notebook.run(0)
    found = page.locator(".wb-monitor")
    expect(found.locator(".wb-panel-loss .wb-area canvas")).to_be_visible()
    page.wait_for_function("() => document.querySelector('.wb-panel-loss .wb-area').plot.data[0].length > 1000")
    return found


def drawn(view: Locator, panel: str = "loss") -> dict[str, Any]:
    """Return what uPlot has drawn: the ends of the horizontal axis, x of its table, values of its first line."""
    area = view.locator(f".wb-panel-{panel} .wb-area")
    found: dict[str, Any] = area.evaluate(
        "({plot}) => ({from: plot.scales.x.min, to: plot.scales.x.max, x: [...plot.data[0]], y: [...plot.data[1]]})"
    )
    return found


def stretch(view: Locator, panel: str = "loss") -> tuple[float, float]:
    """Return where the horizontal axis begins and ends."""
    shown = drawn(view, panel)
    return shown["from"], shown["to"]


def choose(view: Locator, panel: str, entry: str) -> None:
    """An entry of a panel's menu, by keyboard alone."""
    button = view.get_by_role("button", name=f"{panel}: more")
    button.focus()
    button.press("Enter")
    item = view.page.get_by_role("menuitem", name=entry)
    for _ in range(6):
        if item.evaluate("item => item === document.activeElement"):
            break
        view.page.keyboard.press("ArrowDown")
    view.page.keyboard.press("Enter")


def saved(view: Locator, panel: str, entry: str) -> bytes:
    """The file that an entry of a panel's menu offers."""
    with view.page.expect_download() as offered:
        choose(view, panel, entry)
    return Path(offered.value.path()).read_bytes()


def zooming_into_a_long_run_shows_every_record(view: Locator) -> None:
    page, loss = view.page, view.locator(".wb-panel-loss .u-over")
    soon(partial(stretch, view), (1, RECORDS))
    whole = drawn(view)
    assert max(y for y in whole["y"] if y is not None) == pytest.approx(9.0), "no spike disappears"
    box = loss.bounding_box()
    assert box is not None
    place = box["x"] + box["width"] * (SPIKE - 1) / (RECORDS - 1)
    page.mouse.move(place - 10, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(place + 10, box["y"] + 70, steps=4)
    page.mouse.up()
    page.wait_for_function(
        """step => {
            const {data: [x]} = document.querySelector(".wb-panel-loss .wb-area").plot;
            return x.includes(step - 1) && x.includes(step) && x.includes(step + 1);
        }""",
        arg=SPIKE,
    )
    zoomed = still(page, lambda: drawn(view))
    inside = [x for x in zoomed["x"] if zoomed["from"] <= x <= zoomed["to"]]
    assert inside == list(range(int(inside[0]), int(inside[-1]) + 1)), "record by record"
    for panel in ("speed", "scalar"):
        soon(partial(stretch, view, panel), stretch(view))  # all plots show one

    area = view.locator(".wb-panel-loss .wb-area")
    area.focus()
    area.press("Shift+ArrowRight")
    page.wait_for_function("from => document.querySelector('.wb-area').plot.scales.x.min > from", arg=zoomed["from"])
    area.press("End")
    expect(view.locator(".wb-panel-loss .wb-readout")).to_be_visible()
    expect(view.locator(".wb-panel-scalar .wb-readout")).to_contain_text("learning rate")
    view.get_by_role("button", name="FLOPs", exact=True).click()
    page.wait_for_function("() => document.querySelector('.wb-area').plot.scales.x.min > 1e15")
    area.press("Escape")
    # FLOPs travel as float32.
    page.wait_for_function(
        "to => Math.abs(document.querySelector('.wb-area').plot.scales.x.max / to - 1) < 1e-6", arg=3e11 * RECORDS
    )


def plots_leave_as_table_files_and_figure(view: Locator) -> None:
    page = view.page
    view.get_by_label("What the speed panel shows").select_option("split")
    expect(view.locator(".wb-panel-speed .wb-legend")).to_contain_text("backward 160 ms")
    page.locator(".wb-monitor").scroll_into_view_if_needed()
    page.screenshot(path=RESULTS / "watch.png")

    svg = ElementTree.fromstring(saved(view, "Loss", "Save as SVG"))
    texts = [element.text for element in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert {"Loss (nats) · a long run", "train, smoothed", "lr → 0.0005", "optimizer steps"} <= set(texts)
    assert saved(view, "Layer activity", "Save as PNG").startswith(b"\x89PNG")
    rows = list(csv.DictReader(io.StringIO(saved(view, "Loss", "Save numbers as CSV").decode())))
    assert len(rows) == RECORDS, "every record, not what the page holds"
    assert float(rows[SPIKE - 1]["loss"]) == 9.0

    choose(view, "Schedules and gauges", "Show as table")
    expect(view.get_by_role("region", name="Schedules and gauges, table")).to_contain_text("learning rate")
    choose(view, "Loss", "Open as Plotly figure")
    figure = page.locator(".js-plotly-plot").first
    expect(figure).to_be_visible()
    expect(figure.locator(".gtitle").first).to_have_text("Loss")
    # Scrolled to, and said where a screen reader hears it.
    said = view.locator(".wb-toolbar .wb-said")
    expect(said).to_have_text('the Plotly figure "Loss" is open below the plots')
    expect(said).to_have_attribute("role", "status")
    expect(figure).to_be_in_viewport()
    page.screenshot(path=RESULTS / "watch-figure.png")
    nothing_lies_over_a_title(figure)
    # Closed by the keyboard, and back to where it was asked for.
    close = view.get_by_role("button", name="Close", exact=True)
    expect(close).to_be_focused()
    close.press("Escape")
    expect(page.locator(".js-plotly-plot")).to_have_count(0)
    expect(close).to_be_hidden()
    expect(view.get_by_role("button", name="Loss: more")).to_be_focused()
    page.set_viewport_size({"width": 900, "height": 800})
    choose(view, "Layer activity", "Open as Plotly figure")
    expect(figure.locator(".gtitle").first).to_contain_text("Layers: activity")
    expect(figure).to_be_in_viewport()
    figure.hover()
    page.screenshot(path=RESULTS / "watch-figure-layers.png")
    nothing_lies_over_a_title(figure)
    # Nor does the title of the bars at the right over the picture below the layers.
    bars, below = boxes(figure, ".x2title", ".x3y3 .nsewdrag")
    assert bars["left"] >= below["right"]
    page.set_viewport_size(SIZE)
    close.press("Escape")
    expect(page.locator(".js-plotly-plot")).to_have_count(0)


def nothing_lies_over_a_title(figure: Locator) -> None:
    """Neither Plotly's buttons nor the picture, however long the title."""
    buttons, title, picture = boxes(figure, ".modebar", ".gtitle", ".xy .nsewdrag")
    assert buttons["bottom"] <= title["top"]
    assert title["bottom"] <= picture["top"]


def boxes(figure: Locator, *parts: str) -> list[dict[str, float]]:
    """Return the boxes of the first of each, all at one moment: the page may still scroll to the figure."""
    read = "(figure, parts) => parts.map(part => figure.querySelector(part).getBoundingClientRect().toJSON())"
    found: list[dict[str, float]] = figure.evaluate(read, parts)
    return found
