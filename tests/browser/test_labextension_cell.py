"""The Lab of a cell in a tab of JupyterLab, and after its kernel has ended."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import RESULTS, Open
from tests.browser.lab import open_lab
from tests.browser.looks import still, whole_in
from tests.browser.servers import Server, find_kernel
from tests.browser.workbench_tab import lab_of, nothing_lies_over_the_curves, rate, remembered, run, server
from tests.tiny_runs import wait_until
from workbench import presets
from workbench.client.fork_point import steps_of
from workbench.client.run import Run
from workbench.client.run_list import runs

__all__ = ["run", "server"]
pytestmark = pytest.mark.browser


@pytest.mark.extended
def test_the_lab_of_a_cell_opens_in_a_tab_too(page: Page, server: Server, corpus: Path, run: Run) -> None:
    open_lab(page, server, corpus)
    cell = page.locator(".jp-NotebookPanel")
    cell.get_by_role("button", name="Open this Lab in a tab").click()
    lab = lab_of(page)
    expect(lab.locator(".lab-tab")).to_be_hidden()
    rate(lab).fill("0.0025")
    rate(lab).press("Tab")
    expect(lab.locator(".lab-verdict")).to_contain_text("1 knob changed")
    # One Lab in two places.
    page.locator(".lm-TabBar-tab", has_text="lab.ipynb").first.click()
    expect(rate(cell.locator(".lab-whole"))).to_have_value("0.0025")
    assert len(server.ask("api/kernels")) == 1

    # Nobody has launched anything yet: the pane says what to do, and has an example.
    page.locator(".lm-TabBar-tab", has_text="Lab in lab.ipynb").click()
    lab.get_by_role("button", name="Start a running example").click()
    expect(lab.locator(".lab-watch .wb-run")).to_have_count(1)
    expect(lab.locator(".wb-welcome")).to_be_hidden()
    example = runs(server.runs)[0]
    assert example.recipe.hash == presets.get(presets.EXAMPLE).hash
    example.stop()

    # With the page it comes back, and takes a run that is clicked in the side panel: no view of its own opens.
    remembered(server, "workbench-beside")
    page.reload()
    lab = lab_of(page)
    expect(lab.locator(".lab-watch .wb-run")).to_have_count(1)
    expect(lab.locator(".lab-line")).to_have_count(2)
    page.locator(".wb-dock-status").click()
    page.locator(".wb-dock-panel li", has_text=run.name).click()
    expect(lab.locator(".lab-watch .wb-run", has_text=run.name)).to_be_visible()
    expect(lab.locator(f".lab-line[data-run='{run.id}']")).to_be_focused()
    expect(page.locator(".wb-dock-watch")).to_have_count(0)
    the_form_of_a_fork_has_half_of_its_column(page, lab, run)

    # Without its kernel it says what to do.
    server.shut_kernels_down()
    notice = lab.locator(".lab-ended")
    expect(notice).to_contain_text("Run the cell of the Lab again")
    nothing_lies_over_the_curves(lab)
    notice.get_by_role("button", name="Go to the notebook").click()
    expect(page.locator(".jp-NotebookPanel")).to_be_visible()
    expect(page.locator(".wb-dock-lab")).to_have_count(0)


def the_form_of_a_fork_has_half_of_its_column(page: Page, lab: Locator, run: Run) -> None:
    """On a small screen, the side panel beside it."""
    if not steps_of(run.folder):
        run.checkpoint()
        wait_until(lambda: bool(steps_of(run.folder)))
    page.set_viewport_size({"width": 1280, "height": 720})
    line = lab.locator(f".lab-line[data-run='{run.id}']")
    line.get_by_role("checkbox").check()
    lab.locator(".lab-actions").get_by_role("button", name="Fork…").click()
    bar = lab.locator(".lab-fork-bar")
    expect(bar).to_contain_text(f"Fork of {run.name}")
    expect(bar.get_by_role("combobox")).to_contain_text("(newest)")
    expect(lab.locator(".lab-source").first).to_be_hidden()
    page.screenshot(path=RESULTS / "labextension-fork.png")
    rows = lab.locator(".lab-actions button:visible").evaluate_all("all => all.map((one) => one.offsetTop)")
    assert len(set(rows)) == 1, f"the actions stand in {len(set(rows))} rows"
    height = "one => one.getBoundingClientRect().height"
    form, column = still(
        page, lambda: [lab.locator(f".lab-{name}").first.evaluate(height) for name in ("middle", "compose")]
    )
    assert form >= column / 2, f"{form} of {column} px"
    assert whole_in(bar.get_by_role("button", name="New run instead"), ".lab-compose")
    # A fork is not raced; what its verdict says has the place.
    expect(lab.locator(".lab-race-button")).to_be_hidden()
    expect(lab.locator(".lab-verdict")).to_contain_text("as run ")
    content = lab.locator(".lab-verdict .widget-html-content")
    tall, room = still(
        page, lambda: [content.evaluate(f"one => one.{name}") for name in ("scrollHeight", "clientHeight")]
    )
    assert tall <= room + 3, f"the verdict is cut: {tall} in {room} px"
    bar.get_by_role("button", name="New run instead").click()
    expect(bar).to_be_hidden()
    expect(lab.locator(".lab-source").first).to_be_visible()
    expect(lab.locator(".lab-race-button")).to_be_visible()


@pytest.mark.extended
def test_the_lab_of_a_cell_is_started_again_with_what_was_composed(
    new_page: Open, server: Server, corpus: Path
) -> None:
    page = new_page()  # JupyterLab asks about a dead kernel when it likes
    open_lab(page, server, corpus)
    lab = page.locator(".jp-NotebookPanel .lab-whole")
    rate(lab).fill("0.0025")
    rate(lab).press("Tab")
    expect(lab.locator(".lab-verdict")).to_contain_text("1 knob changed")
    (kernel,) = server.ask("api/kernels")
    find_kernel(kernel["id"]).send_signal(signal.SIGKILL)
    page.add_locator_handler(page.locator(".jp-Dialog button.jp-mod-accept").first, lambda button: button.click())
    lab.get_by_role("button", name="Start it again").click()
    expect(lab.locator(".lab-ended")).to_have_count(0)
    expect(rate(lab)).to_have_value("0.0025")
    expect(lab.locator(".lab-verdict")).to_contain_text("as it was when the kernel ended")
    expect(lab.get_by_role("button", name="Launch")).to_be_enabled()

    # A session that the server has forgotten, as one that was started anew has: no kernel says that it ends.
    (session,) = server.ask("api/sessions")
    server.ask(f"api/sessions/{session['id']}", "DELETE")
    lab.get_by_role("button", name="Start it again").click(timeout=60_000)
    expect(lab.locator(".lab-ended")).to_have_count(0, timeout=60_000)
    expect(rate(lab)).to_have_value("0.0025")
