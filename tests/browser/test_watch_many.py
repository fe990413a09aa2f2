"""Six runs in one live view on a small screen: one table, curves in sight, axes, layouts."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.axe import violations
from tests.browser.conftest import RESULTS, pages
from tests.browser.jupyter import Notebook, choose_theme, write_notebook
from tests.browser.looks import expect_curve, parts_cut, soon, still, unfit
from tests.browser.servers import Server
from tests.browser.watched_runs import LARGE, RECORDS, SMALL, axis, box, boxes, drawn, hover, in_sight, write_run
from workbench.store.folder import RunFolder
from workbench.store.state import write_state
from workbench.telemetry.baselines import Learned, learned_briefly

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def folders(server: Server) -> list[RunFolder]:
    """Six runs that are alive."""
    return [write_run(server, number) for number in range(6)]


@pytest.fixture(scope="module")
def notebook(browser: Browser, server: Server, folders: list[RunFolder]) -> Iterator[Notebook]:
    """With their view, in a page whose browser remembers nothing of other tests; its second cell adds a run."""
    with pages(browser, "many") as open_one:
        page = open_one(viewport=SMALL)
        runs = f"[wb.Run(name, {str(server.runs)!r}) for name in {[folder.id for folder in folders]}]"
        cell = (
            f"import workbench as wb\nfrom workbench.jupyter.watch.monitor import Monitor\nview = Monitor({runs})\nview"
        )
        write_notebook(server.root / "many.ipynb", [cell, f"view.add({str(server.runs / 'many-6')!r})"])
        notebook = Notebook(page, server, "many.ipynb")
        notebook.hide_sidebar()
        notebook.run(0)
        yield notebook
    server.shut_kernels_down()


@pytest.fixture(scope="module")
def shown(notebook: Notebook) -> Locator:
    """Their view."""
    return drawn(notebook.page.locator(".wb-monitor"))


@pytest.mark.extended
@pytest.mark.parametrize("where", [".wb-run .wb-name", ".wb-panel-loss .wb-readout .wb-parted"], ids=["row", "reading"])
def test_of_a_name_that_is_cut_what_tells_it_apart_stands(shown: Locator, where: str) -> None:
    hover(shown)
    # A reading is drawn anew, and may be away at the moment.
    soon(lambda: parts_cut(shown.locator(where).first), [True, False])
    shown.page.mouse.move(1, 1)


def test_rows_below_the_last_one_in_sight_cast_a_shadow(shown: Locator) -> None:
    page, rows = shown.page, shown.locator(".wb-runs")
    page.set_viewport_size(SMALL)  # type: ignore[arg-type]
    drawn(shown)

    def edge(scrolled: int) -> bytes:
        rows.evaluate("(rows, top) => { rows.scrollTop = top; }", scrolled)
        place = still(page, lambda: box(rows))
        # Of the last row, below its words.
        corner = {"x": place["x"] + 4, "y": place["y"] + place["height"] - 5, "width": 8, "height": 3}
        return page.screenshot(clip=corner)  # type: ignore[arg-type]

    assert rows.evaluate("rows => rows.scrollHeight > rows.clientHeight + 20")
    more, end = edge(0), edge(1000)
    assert more != end
    rows.evaluate("rows => { rows.style.background = 'var(--wb-ground)'; }")
    assert edge(0) == end, "at the end there is none"
    rows.evaluate("rows => { rows.style.background = ''; }")


def test_the_table_leaves_the_view_to_the_curves(shown: Locator) -> None:
    page = shown.page
    page.set_viewport_size(SMALL)  # type: ignore[arg-type]
    drawn(shown)
    table, plot = still(page, lambda: boxes(shown))
    pane = page.locator(".jp-WindowedPanel-outer").evaluate("pane => pane.clientHeight")
    assert table["height"] <= 0.2 * pane + 1
    assert plot["height"] >= 0.3 * pane
    assert plot["y"] + plot["height"] <= SMALL["height"], "the whole loss plot is in sight"
    expect_curve(shown, 2000)
    heights = {row["height"] for row in map(box, shown.locator(".wb-run").all())}
    assert max(heights) <= 26, "one line per run"

    # Steering stands beside the curves; asking whether to stop moves nothing.
    shown.get_by_role("button", name="Steer: run 2").click()
    panel = box(shown.get_by_role("region", name="Steer run 2"))
    assert still(page, lambda: boxes(shown)) == [table, plot]
    assert panel["x"] >= plot["x"] + plot["width"]
    shown.get_by_role("button", name="Stop: run 3").click()
    expect(shown.get_by_role("alertdialog").get_by_role("button", name="Stop")).to_be_focused()
    assert still(page, lambda: boxes(shown)) == [table, plot]
    assert violations(page, "six runs", roots=(".wb-monitor",)) == []
    assert still(page, lambda: unfit(page)) == []
    page.screenshot(path=RESULTS / "many-1280.png")
    page.keyboard.press("Escape")
    shown.get_by_role("button", name="Close the panel that steers run 2").click()
    expect(shown.get_by_role("button", name="Steer: run 2")).to_be_focused()


def test_a_reading_stays_in_the_plot_with_one_row_per_run(shown: Locator) -> None:
    page, plot = shown.page, shown.locator(".wb-panel-loss .wb-plot")
    over = box(shown.locator(".wb-panel-loss .u-over"))
    readout = plot.locator(".wb-readout")
    area = shown.locator(".wb-panel-loss .wb-area")
    # Scored from step 100 on: before, neither words nor dots.
    for share, scored in ((0.02, 0), (0.6, 6), (0.98, 6)):
        hover(shown, share)
        expect(readout.locator("b", has_text=re.compile(r"^held-out .* \(step \d+\)$"))).to_have_count(scored)
        without = area.evaluate("({plot}) => plot.cursor.idxs.filter((row) => row === null).length")
        assert without == 6 - scored
        inside, around = still(page, lambda: [box(readout), box(plot)])
        assert around["x"] <= inside["x"]
        assert inside["x"] + inside["width"] <= around["x"] + around["width"] + 1
        assert around["y"] <= inside["y"]
        assert inside["y"] + inside["height"] <= around["y"] + around["height"]
    expect(readout.locator("div", has_text="run ")).to_have_count(6)
    # A floor says what it is, under the pointer and in the legend.
    place = shown.locator(".wb-panel-loss .wb-area").evaluate("({plot}) => plot.valToPos(6.9, 'y')")
    page.mouse.move(over["x"] + 0.5 * over["width"], over["y"] + place)
    expect(readout).to_contain_text("knowing only how often each token occurs")
    explained = shown.locator(".wb-legend-item", has_text="neighbours")
    expect(explained).to_have_attribute("title", re.compile("nearest tokens alone"))
    page.mouse.move(1, 1)
    shown.get_by_role("button", name="Show in the plots: run 4").click()
    expect(shown.locator(".wb-unseen")).to_have_count(1)
    shown.get_by_role("button", name="Show in the plots: run 4").click()


def test_single_spikes_do_not_squeeze_the_curves(shown: Locator) -> None:
    low, high = still(shown.page, lambda: axis(shown))
    assert 5.5 < low < 6
    assert 9 < high < 11
    button = shown.get_by_role("button", name="Axis of Loss", exact=True)
    expect(button).to_contain_text("▲12")
    button.click()
    dialog = shown.page.get_by_role("dialog", name="Axis of Loss")
    dialog.get_by_role("radio", name="Fit all values: Loss").check()
    soon(lambda: axis(shown)[1], lambda end: end > 14.6)
    expect(button).not_to_contain_text("▲")
    dialog.get_by_role("textbox", name="From: Loss").fill("6.1")
    dialog.get_by_role("textbox", name="To: Loss").fill("7.1")
    soon(lambda: axis(shown), (6.1, 7.1))
    dialog.get_by_role("textbox", name="To: Loss").fill("5")
    expect(dialog.get_by_role("alert")).to_have_text("From must be below To")
    assert still(shown.page, lambda: axis(shown)) == (6.1, 7.1), "what cannot be changes nothing"
    dialog.get_by_role("textbox", name="From: Loss").fill("4")
    soon(lambda: axis(shown), (4, 5))
    expect(dialog.get_by_role("alert")).to_have_count(0)
    dialog.get_by_role("button", name="Reset the axis of Loss").click()
    logarithmic = dialog.get_by_role("checkbox", name="Logarithmic: Loss")
    dialog.get_by_role("textbox", name="From: Loss").fill("-1")
    logarithmic.click()
    expect(dialog.get_by_role("alert")).to_have_text("a logarithmic axis has numbers above 0 only: From is -1")
    expect(logarithmic).not_to_be_checked()
    soon(lambda: axis(shown)[0], -1)
    dialog.get_by_role("textbox", name="From: Loss").fill("")
    logarithmic.check()
    expect(dialog.get_by_role("alert")).to_have_count(0)
    area = shown.locator(".wb-panel-loss .wb-area")
    soon(lambda: area.evaluate("({plot}) => plot.scales.y.distr"), 3)
    dialog.get_by_role("button", name="Reset the axis of Loss").click()
    shown.page.keyboard.press("Escape")
    expect(button).to_be_focused()
    soon(lambda: axis(shown), (low, high))


def test_a_plot_takes_the_view_and_the_layout_is_remembered(shown: Locator) -> None:
    page = shown.page
    loss, area = shown.locator(".wb-panel-loss"), shown.locator(".wb-panel-loss .wb-area")
    before = still(page, lambda: box(area))
    area.focus()
    page.keyboard.press("m")
    expect(shown.locator(".wb-panel-speed")).to_be_hidden()
    page.wait_for_function(
        "height => document.querySelector('.wb-panel-loss .wb-area').clientHeight > height", arg=before["height"] + 30
    )
    page.screenshot(path=RESULTS / "many-large.png")
    pane = box(page.locator(".jp-WindowedPanel-outer"))
    panel = still(page, lambda: box(loss))
    assert pane["y"] <= panel["y"] + 1
    assert 0.95 * pane["height"] <= panel["height"] <= pane["height"], "its panel fills the pane"
    assert panel["y"] + panel["height"] <= pane["y"] + pane["height"] + 1
    assert box(area)["height"] >= 0.7 * pane["height"]
    # The table that says which line is which run is out of sight.
    expect(loss.locator(".wb-legend-item", has_text=re.compile(r"^run \d$"))).to_have_count(6)
    page.keyboard.press("Escape")
    expect(shown.locator(".wb-panel-speed")).to_be_visible()
    expect(area).to_be_focused()
    assert still(page, lambda: box(area)) == before, "and all is where it was"
    expect(loss.locator(".wb-legend-item", has_text=re.compile(r"^run \d$"))).to_have_count(0)
    loss.get_by_role("button", name="Enlarge: Loss").click()
    expect(shown.locator(".wb-panel-layers")).to_be_hidden()
    loss.get_by_role("button", name="Enlarge: Loss").press("Escape")
    expect(shown.locator(".wb-panel-layers")).to_be_visible()

    shown.get_by_role("button", name="Tokens", exact=True).click()
    shown.get_by_role("separator", name="Height of Loss").press("ArrowDown")
    shown.get_by_role("separator", name="Width of the columns").press("ArrowRight")
    shown.get_by_role("button", name="Layout of the plots").click()
    dialog = page.get_by_role("dialog", name="Layout of the plots")
    dialog.get_by_role("checkbox", name="Show the plot Events").uncheck()
    name, keep = (dialog.get_by_role(role, name=said) for role, said in (
        ("textbox", "Name of this layout"), ("button", "Save this layout under the name")))  # fmt: skip
    keep.click()
    expect(name).to_have_attribute("placeholder", "type a name")
    expect(name).to_be_focused()
    name.fill("wide")
    keep.click()
    saved = dialog.get_by_role("button", name="Apply the layout wide")
    assert saved.evaluate("node => node.scrollWidth <= node.clientWidth"), "its name is cut"
    page.keyboard.press("Escape")

    # The cell run again brings another view, which finds it as it was left.
    page.locator(".jp-CodeCell .cm-content").first.click()
    page.keyboard.press("Control+Enter")
    expect(shown.locator(".wb-panel-events")).to_be_hidden()
    drawn(shown)
    expect(shown.get_by_role("button", name="Tokens", exact=True)).to_have_attribute("aria-pressed", "true")
    expect(shown.get_by_role("separator", name="Width of the columns")).to_have_attribute("aria-valuenow", "65")
    shown.get_by_role("button", name="Layout of the plots").click()
    dialog.get_by_role("button", name="Reset the layout").click()
    expect(shown.locator(".wb-panel-events")).to_be_visible()
    expect(shown.get_by_role("button", name="Steps", exact=True)).to_have_attribute("aria-pressed", "true")
    dialog.get_by_role("button", name="Apply the layout wide").click()
    expect(shown.locator(".wb-panel-events")).to_be_hidden()
    dialog.get_by_role("button", name="Reset the layout").click()
    dialog.get_by_role("button", name="Delete the layout wide").click()
    expect(dialog.get_by_role("button", name="Apply the layout wide")).to_have_count(0)
    page.keyboard.press("Escape")


def test_a_table_of_an_enlarged_plot_keeps_its_title_and_offers_all_records(shown: Locator) -> None:
    page, panel = shown.page, shown.locator(".wb-panel-loss")
    page.set_viewport_size(SMALL)  # type: ignore[arg-type]
    panel.get_by_role("button", name="Loss: more").press("Enter")
    page.get_by_role("menuitem", name="Show as table").press("Enter")
    table = panel.get_by_role("region", name="Loss, table")
    expect(table).to_be_focused()
    note = panel.locator(".wb-sheet-note")
    expect(note).to_contain_text(re.compile(rf"\d+ of {RECORDS} records, newest first"))
    page.keyboard.press("m")
    expect(shown.locator(".wb-panel-speed")).to_be_hidden()
    still(page, lambda: box(table))
    page.keyboard.press("End")
    expect(table.get_by_role("row").last).to_be_in_viewport()
    for part in (panel.get_by_role("heading", name="Loss"), note):
        expect(part).to_be_in_viewport()
    page.screenshot(path=RESULTS / "many-large-table.png")
    assert violations(page, "a large table", roots=(".wb-monitor",)) == []
    with page.expect_download() as offered:
        note.get_by_role("button", name="Save all as CSV: Loss").press("Enter")
    rows = Path(offered.value.path()).read_text().splitlines()
    assert len(rows) == 1 + 6 * RECORDS
    # The layout has both, and its reset takes both back.
    shown.get_by_role("button", name="Layout of the plots").click()
    page.get_by_role("button", name="Reset the layout").click()
    expect(panel.locator(".wb-area canvas")).to_be_visible()
    expect(table).to_be_hidden()
    expect(shown.locator(".wb-panel-speed")).to_be_visible()
    page.keyboard.press("Escape")


def test_what_was_learned_is_said_as_python_says_it(shown: Locator) -> None:
    row = shown.locator(".wb-run", has_text="run 0")
    # 6.1 nats: below word frequencies (6.9), above neighbours (5.9), which it has not reached.
    expect(row.locator(".wb-col-learned")).to_have_text("learning neighbours")
    label = shown.locator(".wb-panel-loss .wb-area").get_attribute("aria-label") or ""
    assert re.search(r"run 0: training [^;]*, learning neighbours;", label), label


def test_words_of_events_of_several_runs_are_reached_by_keys(shown: Locator) -> None:
    page, panel = shown.page, shown.locator(".wb-panel-loss")
    assert "lists the events marked" in (panel.locator(".wb-area").get_attribute("aria-label") or "")
    panel.get_by_role("button", name="Loss: more").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem", name="Show as table")).to_be_focused()
    page.keyboard.press("Enter")
    told = panel.get_by_role("table", name=re.compile("Events marked in the plot"))
    expect(told.get_by_role("row")).to_have_count(1 + 6)
    expect(told.get_by_role("row").nth(1)).to_have_text(
        re.compile(r"step 60run \dmemory: kept: 8 rows per micro-batch")
    )
    assert violations(page, "six runs, their loss as a table", roots=(".wb-monitor",)) == []
    panel.get_by_role("button", name="Loss: more").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(panel.locator(".wb-area canvas")).to_be_visible()
    name, rows = csv_of(shown, "Events")
    assert name.startswith("events-6-runs-")
    assert {row["run"] for row in rows if row["kind"] == "memory"} == {f"run {place}" for place in range(6)}
    # The layers of one run are that run's, by name.
    shown.get_by_label("Run shown in the layer map").select_option(label="run 2")
    name, rows = csv_of(shown, "Layer activity")
    assert name == "layers-run-2.csv"
    assert {row["run"] for row in rows} == {"run 2"}


def csv_of(view: Locator, panel: str) -> tuple[str, list[dict[str, str]]]:
    """File name and rows of what a panel's menu saves."""
    view.get_by_role("button", name=f"{panel}: more").click()
    with view.page.expect_download() as offered:
        view.page.get_by_role("menuitem", name="Save numbers as CSV").click()
    with Path(offered.value.path()).open(newline="") as file:
        return offered.value.suggested_filename, list(csv.DictReader(file))


@pytest.mark.extended
def test_it_reads_in_the_dark_too(shown: Locator) -> None:
    page = shown.page
    choose_theme(page, "JupyterLab Dark")
    expect(shown).to_have_attribute("data-theme", "dark")
    drawn(shown)
    page.screenshot(path=RESULTS / "many-dark.png")
    assert violations(page, "six runs, dark", roots=(".wb-monitor",)) == []
    choose_theme(page, "JupyterLab Light")


def test_what_has_just_come_is_seen(
    shown: Locator, notebook: Notebook, server: Server, folders: list[RunFolder]
) -> None:
    table = shown.locator(".wb-runs")
    shown.page.set_viewport_size(LARGE)  # type: ignore[arg-type]
    write_run(server, 6, {"amount": 4321, "unit": "seconds"})
    notebook.run(1)
    row = shown.locator(".wb-run", has_text="run 6")
    soon(lambda: in_sight(row, table), True)
    # The longest of the words for what was learned is not cut where there is room.
    longest = max(map(learned_briefly, get_args(Learned)), key=len)
    words = "(cell, text) => { cell.textContent = text; return cell.scrollWidth - cell.clientWidth; }"
    assert row.locator(".wb-col-learned").evaluate(words, longest) == 0
    toggles = shown.locator(".wb-steer-toggle")
    # However much there is to say in however little room, the buttons stay in sight.
    for width in (905, 705, 525):
        shown.evaluate("(view, width) => { view.style.width = `${width}px`; }", width)
        ends = still(shown.page, lambda: [here["x"] + here["width"] for here in map(box, toggles.all())])
        assert max(ends) <= box(table)["x"] + width, width
        assert table.evaluate("table => table.scrollWidth - table.clientWidth") == 0, width
    shown.evaluate("view => { view.style.width = ''; }")
    why = "the loss is not a number since step 17\n" + "lower optimizer.lr, or clip harder. " * 12
    write_state(folders[1], status="failed", error=why)
    reason = shown.locator(".wb-reason", has_text="not a number")
    expect(reason).to_be_visible()
    soon(lambda: in_sight(reason, table), True)
    # Beside other runs it takes one line, and the whole of it is under the pointer.
    assert box(reason)["height"] < 24, "it wraps"
    assert reason.evaluate("one => one.scrollWidth > one.clientWidth")
    expect(reason).to_have_attribute("title", re.compile(f"^{why.strip()}"))
    assert box(table)["y"] + box(table)["height"] >= box(reason)["y"] + box(reason)["height"]
    assert table.evaluate("table => table.scrollWidth - table.clientWidth") == 0
    table.screenshot(path=RESULTS / "many-failed.png")


def test_the_panel_of_a_run_that_has_ended_makes_room_for_the_next(shown: Locator, folders: list[RunFolder]) -> None:
    shown.page.set_viewport_size(LARGE)  # type: ignore[arg-type]
    old, new = (shown.get_by_role("region", name=f"Steer run {number}") for number in (4, 3))
    shown.get_by_role("button", name="Steer: run 4").click()
    expect(old).to_be_visible()
    write_state(folders[4], status="stopped")
    expect(old).to_contain_text("the run has ended")
    shown.get_by_role("button", name="Steer: run 3").click()
    expect(new).to_be_visible()
    expect(old).to_be_hidden()
    expect(shown.get_by_role("button", name="Steer: run 4")).to_have_attribute("aria-expanded", "false")
    expect(new.get_by_role("button", name="Fork")).to_be_in_viewport()
