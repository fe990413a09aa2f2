"""The quickstart in a real JupyterLab: two runs are live before anything waits, and outlive the kernel."""

from __future__ import annotations

import re
import time

import psutil
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import RESULTS, Server
from tests.browser.jupyter import Notebook, code_cell, set_parameters
from tests.browser.looks import expect_curve, expect_picture
from tests.tiny_runs import yield_to_others
from workbench.client.run import Run
from workbench.client.run_list import runs

pytestmark = pytest.mark.browser
NAME = "00_quickstart.ipynb"


def step_shown(monitor: Locator) -> int:
    """The step that the live view tells."""
    text = monitor.locator(".wb-progress").first.inner_text()
    found = re.search(r"step ([\d,\u202f ]+)", text)
    return int(re.sub(r"\D", "", found[1])) if found else 0


def wait_for_growth(page: Page, monitor: Locator, beyond: int, seconds: float = 60) -> int:
    """Until the live view shows a later step; returns it."""
    deadline = time.monotonic() + seconds
    while (step := step_shown(monitor)) <= beyond:
        assert time.monotonic() < deadline, f"the live view stands at step {step}"
        page.wait_for_timeout(200)
    return step


def test_two_runs_are_launched_watched_and_outlive_the_kernel(page: Page, server: Server, learnable: list[str]) -> None:
    path = server.root / NAME
    set_parameters(path, budget="1 h", runs_dir=None, overrides=learnable)
    notebook = Notebook(page, server, NAME)
    notebook.hide_sidebar()
    notebook.run(code_cell(path, "budget ="))
    diff = notebook.run(code_cell(path, "import workbench"))
    expect(diff.locator("th")).to_have_text(["knob", "here", "there"])
    expect(diff.locator("tr", has_text="depth.kind")).to_have_text(re.compile("full.*progressive_drop"))
    notebook.run(code_cell(path, "wb.launch"))
    dropping, every_layer = runs(server.runs)
    assert (every_layer.name, dropping.name) == ("every layer", "dropping layers")
    watched = dropping

    # In a cell that may be run again: it launches nothing.
    watching = notebook.run(code_cell(path, "wb.compare(runs)"))
    monitor = watching.locator(".wb-monitor")
    first = wait_for_growth(page, monitor, 0)
    wait_for_growth(page, monitor, first)
    expect_curve(monitor)
    for run in (every_layer, dropping):
        expect(monitor).to_contain_text(run.name)
        # Both at once, before any cell that waits.
        expect_growth(run, 0)
        yield_to_others(run)
    monitor.scroll_into_view_if_needed()
    page.screenshot(path=RESULTS / "quickstart-live.png")

    before = watched.state
    notebook.restart_kernel()
    expect_growth(watched, before.step)
    assert psutil.pid_exists(watched.state.pid)
    assert (watched.state.pid, watched.state.attempt) == (before.pid, before.attempt), "it was started again"

    # A kernel that knows nothing finds the run by its folder, as after closing the tab.
    cell = notebook.cell(code_cell(path, "import workbench"))
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text("import workbench as wb\nwb.runs()[0].watch()")
    output = notebook.run(code_cell(path, "import workbench"))
    again = output.locator(".wb-monitor")
    shown = wait_for_growth(page, again, before.step)
    wait_for_growth(page, again, shown)
    again.scroll_into_view_if_needed()
    page.screenshot(path=RESULTS / "quickstart-reopened.png")

    # At its end the view gives way to a picture that needs neither kernel nor scripts.
    every_layer.stop()
    watched.stop()
    picture = output.locator("img")
    expect(picture).to_be_visible(timeout=60_000)
    expect(output.locator(".wb-monitor")).to_have_count(0)
    expect_picture(picture)
    picture.scroll_into_view_if_needed()
    page.screenshot(path=RESULTS / "quickstart-finished.png")
    assert watched.status == "stopped"
    assert notebook.complaints == []


def expect_growth(run: Run, beyond: int, seconds: float = 60) -> None:
    """Until the run itself, as its folder tells, is past a step."""
    deadline = time.monotonic() + seconds
    while run.state.step <= beyond:
        assert time.monotonic() < deadline, f"{run} stands at step {run.state.step}"
        time.sleep(0.1)
