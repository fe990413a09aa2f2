"""The Workbench's own place in JupyterLab: a tile, the Lab in a tab, runs in the side panel and in the status bar."""

from __future__ import annotations

import re
import shutil
import signal

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import violations
from tests.browser.conftest import RESULTS, Open
from tests.browser.lab import open_axes
from tests.browser.looks import expect_curve, still
from tests.browser.servers import Server, find_kernel
from tests.browser.steer import stop
from tests.browser.workbench_tab import (
    jupyter,
    lab_of,
    nothing_lies_over_the_curves,
    rate,
    remembered,
    run,
    server,
    session,
)
from tests.jupyter.live import run_folder
from workbench.client.run import Run
from workbench.store.folder import write_json
from workbench.store.labels import label
from workbench.store.state import write_state
from workbench.telemetry.streams import TelemetryWriter

__all__ = ["run", "server"]
pytestmark = pytest.mark.browser


@pytest.mark.usefixtures("run")
def test_the_lab_has_a_tile_survives_a_reload_and_outlives_its_kernel(new_page: Open, server: Server) -> None:
    page = new_page()
    jupyter(page, server)
    the_palette_names_it(page)
    card = page.locator(".jp-LauncherCard", has_text="Workbench")
    expect(card).to_have_attribute("title", re.compile("."))
    card.click()
    lab = lab_of(page)
    assert session(server)["name"] == session(server)["path"] == "Workbench"
    # The tab is the Lab's alone, to its last line.
    height = "one => one.getBoundingClientRect().height"
    tab, body = still(page, lambda: [one.evaluate(height) for one in (lab, lab.locator(".lab-body"))])
    assert tab - 40 < body <= tab
    assert lab.evaluate("tab => tab.scrollHeight <= tab.clientHeight")
    page.screenshot(path=RESULTS / "labextension-lab.png")

    open_axes(page, "Optimizer")  # and so it stays, through all that follows
    rate(lab).fill("0.0035")
    rate(lab).press("Tab")
    verdict = lab.locator(".lab-verdict")
    expect(verdict).to_contain_text("1 knob changed")
    remembered(server, "workbench-lab")
    kernel = session(server)["kernel"]["id"]
    page.reload()
    lab = lab_of(page)
    expect(rate(lab)).to_have_value("0.0035")
    assert session(server)["kernel"]["id"] == kernel

    # Dead of itself: the server starts another process, and the tab what was in it.
    find_kernel(kernel).send_signal(signal.SIGKILL)
    expect(lab.locator(".lab-ended")).to_contain_text("It starts again with what you had composed")
    lab = lab_of(page)
    expect(rate(lab)).to_have_value("0.0035")
    expect(lab.locator(".lab-verdict")).to_contain_text("1 knob changed")


@pytest.mark.extended
def test_a_lab_that_was_shut_down_or_closed_comes_back(new_page: Open, server: Server, run: Run) -> None:
    page = new_page()
    jupyter(page, server)
    page.evaluate("void window.jupyterapp.commands.execute('workbench:open')")
    lab = lab_of(page)
    open_axes(page, "Optimizer")
    rate(lab).fill("0.0035")
    rate(lab).press("Tab")
    expect(lab.locator(".lab-verdict")).to_contain_text("1 knob changed")
    kernel = session(server)["kernel"]["id"]

    # Shut down by somebody: the tab starts another one when it is told to, and curves are read until then.
    lab.locator(f".lab-line[data-run='{run.id}'] .lab-mark").click()
    expect_curve(lab.locator(".wb-monitor"))
    server.shut_kernels_down()
    expect(lab.locator(".lab-ended")).to_contain_text("what you composed is kept")
    page.set_viewport_size({"width": 1280, "height": 720})
    nothing_lies_over_the_curves(lab)
    page.screenshot(path=RESULTS / "labextension-ended.png")
    # Its numbers come from the server.
    line = lab.locator(".lab-watch .wb-run .wb-place")
    before = line.inner_text()
    expect(line).not_to_have_text(before, use_inner_text=True)
    lab.get_by_role("button", name="Start it again").click()
    lab = lab_of(page)
    expect(rate(lab)).to_have_value("0.0035")
    assert session(server)["kernel"]["id"] != kernel
    rate(lab).fill("0.0045")
    rate(lab).press("Tab")
    expect(lab.locator(".lab-verdict")).to_contain_text("1 knob changed")
    expect(lab.get_by_role("button", name="Launch")).to_be_enabled()

    # Closed and opened again, by the palette's command: the same kernel's Lab.
    page.evaluate("window.jupyterapp.commands.execute('application:close')")
    expect(page.locator(".wb-dock-lab")).to_have_count(0)
    page.evaluate("void window.jupyterapp.commands.execute('workbench:open')")
    expect(rate(lab_of(page))).to_have_value("0.0045")

    # A click on its kernel among those that run means the Lab, and no console.
    jupyter(page, server)
    page.evaluate("window.jupyterapp.shell.activateById('jp-running-sessions')")
    page.locator("#jp-running-sessions .jp-RunningSessions-itemLabel", has_text=re.compile("^Workbench$")).click()
    expect(rate(lab_of(page))).to_have_value("0.0045")
    expect(page.locator(".jp-CodeConsole")).to_have_count(0)
    another_window_has_a_form_of_its_own(new_page(), server, lab_of(page))


def another_window_has_a_form_of_its_own(page: Page, server: Server, first: Locator) -> None:
    """It begins with what was composed last, in the same kernel."""
    jupyter(page, server)
    page.evaluate("void window.jupyterapp.commands.execute('workbench:open')")
    expect(rate(lab_of(page))).to_have_value("0.0045")
    rate(lab_of(page)).fill("0.0055")
    rate(lab_of(page)).press("Tab")
    expect(page.locator(".lab-verdict")).to_contain_text("1 knob changed")
    (kernel,) = server.ask("api/kernels")
    assert kernel["id"] == session(server)["kernel"]["id"]
    page.reload()
    expect(rate(lab_of(page))).to_have_value("0.0055")
    expect(rate(first)).to_have_value("0.0045")


STEPS = {"amount": 40, "unit": "steps"}


@pytest.mark.extended
def test_a_run_that_has_ended_shows_everything_it_recorded_without_any_kernel(page: Page, server: Server) -> None:
    folder = run_folder(server.runs / "ended-1", "finished", False, name="ended", budget=STEPS)
    writer = TelemetryWriter(folder.telemetry, flush_seconds=60)
    for step in range(1, 41):
        numbers = {"memory_gib": 1.5, "accuracy": step / 80, "step_ms": 30.0, "forward_ms": 9.0, "backward_ms": 18.0}
        numbers |= {
            "precision": step / 50,
            "recall": step / 60,
            "loss": 9 - step / 9,
            "lr": 1e-3,
            "tokens_per_second": 900.0 + step,
        }
        writer.scalars(step, step / 4, 400 * step, **numbers)
        writer.layers(step, state=[0, 0], update_ratio=[1e-3, 2e-3 / step])
    writer.close()
    scored = {"score": {"kind": "masked-only", "version": 2}, "unigram_entropy": 6.5, "bigram_entropy": 4.0}
    write_json(folder.evaluations, scored)
    write_state(folder, status="finished", step=40, tokens=16_000, seconds=10.0, heldout_loss=4.9)
    # One that compiles says so in whole, in the place of a count that has not begun.
    begins = run_folder(server.runs / "begins-1", "starting", name="begins", budget=STEPS)
    why = "compiling (1 to 3 minutes the first time on this machine, later runs of this shape begin at once)"
    write_state(begins, message=why)

    jupyter(page, server)
    page.evaluate("window.jupyterapp.shell.activateById('workbench-runs')")
    page.locator(".wb-dock-panel li", has_text="begins").click()
    message = page.locator(".wb-dock-watch .wb-monitor .wb-message", has_text=why)
    expect(message).to_be_visible()
    assert message.evaluate("one => one.scrollWidth <= one.clientWidth && one.scrollHeight <= one.clientHeight + 1")
    write_state(begins, status="stopped")  # those that train are counted by what comes next

    page.locator(".wb-dock-panel li", has_text="ended").click()
    monitor = page.locator(".wb-dock-watch .wb-monitor").filter(visible=True)
    expect_curve(monitor)
    expect(monitor.locator(".wb-verdict")).to_contain_text("learning neighbours: 1.60 nats below word frequencies")
    expect(monitor.locator("td.wb-col-speed span")).to_have_text("1.6k")
    # All of its layers run all the time: what moves is shown.
    expect(monitor.get_by_label("Quantity shown in the layer map")).to_have_value("update_ratio")
    speed = monitor.locator(".wb-panel-speed")
    for mode in ("memory", "split"):
        monitor.get_by_label("What the speed panel shows").select_option(mode)
        expect(speed.locator(".wb-area canvas")).to_be_visible()
        expect(speed).not_to_contain_text("Nothing was recorded")
    # Of one that finds replaced tokens, both shares at once.
    expect(monitor.locator(".wb-panel-scalar .wb-legend")).to_contain_text(
        re.compile(r"precision \(%\).*recall \(%\)", re.DOTALL)
    )
    monitor.get_by_label("Quantity", exact=True).select_option("accuracy")
    expect(monitor.locator(".wb-panel-scalar .wb-area canvas")).to_be_visible()
    for done in (begins, folder):
        shutil.rmtree(done.path)


def the_palette_names_it(page: Page) -> None:
    """With what it opens."""
    page.keyboard.press("Control+Shift+c")
    page.keyboard.type("workbench")
    items = page.locator(".lm-CommandPalette-itemLabel")
    expect(items.filter(has_text="Open Workbench")).to_be_visible()
    expect(items.filter(has_text="Show Runs")).to_be_visible()
    page.keyboard.press("Escape")


def test_runs_are_counted_listed_and_watched_without_any_kernel(page: Page, server: Server, run: Run) -> None:
    jupyter(page, server)
    status = page.locator(".wb-dock-status")
    expect(status).to_have_text("1 training")
    status.click()
    panel = page.locator(".wb-dock-panel")
    line = panel.locator("li").first
    expect(line).to_contain_text(run.name)
    expect(line).to_contain_text(re.compile(r"running · loss \d\.\d{3} · \d"))
    line.click()
    monitor = page.locator(".wb-dock-watch .wb-monitor")
    expect(monitor.locator(".wb-pill").first).to_have_text("running")
    expect_curve(monitor)
    page.screenshot(path=RESULTS / "labextension-runs.png")
    assert violations(page, "runs beside", roots=(".wb-dock-panel", ".wb-dock-bar")) == []
    remembered(server, "workbench-watch")
    page.reload()
    expect(monitor.locator(".wb-pill").first).to_have_text("running")
    expect_curve(monitor)
    # Asked by the server alone, it stops.
    stop(page)
    expect(monitor.locator(".wb-pill").first).to_have_text("stopped")
    expect(status).to_have_text("0 training")
    expect(panel.locator("li").first).to_contain_text("stopped")
    assert server.ask("api/kernels") == []


def test_runs_of_a_race_stand_under_one_line(page: Page, server: Server, run: Run) -> None:
    jupyter(page, server)
    folders = []
    for seed in (0, 1):
        folders.append(run_folder(server.runs / f"20260101-000000-arm-s{seed}", "finished", False, name=f"arm {seed}"))
        label(folders[-1], add=["race:deep-or-wide"])
    page.locator(".wb-dock-status").click()
    panel = page.locator(".wb-dock-panel")
    race = panel.get_by_role("button", name="race deep-or-wide")
    expect(race).to_contain_text("2 runs, finished")
    expect(race).to_have_attribute("aria-expanded", "false")
    arms = panel.get_by_role("list", name="runs of race deep-or-wide").get_by_role("button")
    expect(panel.get_by_role("button", name="arm 0")).to_have_count(0)
    race.focus()
    page.keyboard.press("ArrowRight")
    expect(arms).to_have_count(2)
    page.screenshot(path=RESULTS / "labextension-race.png")
    assert violations(page, "a race beside", roots=(".wb-dock-panel",)) == []
    page.keyboard.press("ArrowLeft")
    expect(race).to_have_attribute("aria-expanded", "false")
    expect(race).to_be_focused()
    page.keyboard.press("Enter")
    expect(arms.first).to_contain_text("arm 1")
    for folder in folders:
        shutil.rmtree(folder.path)
