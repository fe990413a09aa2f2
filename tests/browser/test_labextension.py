"""The Workbench's own place in JupyterLab: a tile, the Lab in a tab, runs in the side panel and in the status bar."""

from __future__ import annotations

import dataclasses
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import violations
from tests.browser.conftest import RESULTS, Open
from tests.browser.lab import open_axes, open_lab
from tests.browser.looks import expect_curve, still, whole_in
from tests.browser.servers import Server, find_kernel, jupyterlab
from tests.browser.steer import stop, trained_meanwhile
from tests.jupyter.live import run_folder
from tests.tiny_runs import wait_until
from workbench import presets
from workbench.client.fork_point import steps_of
from workbench.client.run import Run
from workbench.client.run_list import runs
from workbench.store.folder import write_json
from workbench.store.labels import label
from workbench.store.state import write_state
from workbench.telemetry.streams import TelemetryWriter

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, chromium: str, kernel_template: str) -> Iterator[Server]:
    """A JupyterLab of its own, whose kernels keep runs in the server's own runs folder, as `make lab` starts it."""
    home = tmp_path_factory.mktemp("labextension")
    with jupyterlab(home, home / "notebooks" / "runs", template=kernel_template) as found:
        yield dataclasses.replace(found, runs=found.root / "runs")


@pytest.fixture(scope="module")
def run(server: Server, corpus: Path) -> Iterator[Run]:
    """A run that goes on for long; no kernel knows of it."""
    with trained_meanwhile(corpus, server.runs) as live:
        yield live


# As a page is at first: files on the left, and in the middle what comes when all is closed.
_EMPTY = """() => {
    const {shell} = window.jupyterapp;
    [...shell.widgets("main")].forEach(each => each.dispose());
    shell.activateById("filebrowser");
}"""


def jupyter(page: Page, server: Server) -> None:
    """JupyterLab with nothing but its launcher: the one that the page shows already, where it does."""
    if page.url.startswith(f"{server.url}/lab"):
        page.evaluate(_EMPTY)
    else:
        page.goto(f"{server.url}/lab?reset&token={server.token}")
    expect(page.locator(".jp-Launcher")).to_be_visible()
    expect(page.locator(".jp-Launcher")).to_have_count(1)


def lab_of(page: Page) -> Locator:
    """The Lab's tab, all of it there: to take a view away that JupyterLab still loads is an error in its console."""
    lab = page.locator(".wb-dock-lab:visible")
    expect(lab.locator(".wb-dock-cover")).to_be_hidden()
    # The Lab of a kernel that has ended stands there until the next one comes.
    expect(lab.locator(".lab-ended")).to_have_count(0)
    expect(lab.locator(".lab-composer")).to_be_visible()
    expect(lab.locator(".lab-runs .lab-actions").first).to_be_visible()
    expect(lab.locator(".lab-border")).to_have_count(2)
    expect(page.locator("#jp-main-statusbar")).to_contain_text("| Idle")
    return lab


def rate(lab: Locator) -> Locator:
    """The box of the learning rate, of a Lab whose axis of optimizers is open (:func:`open_axes`)."""
    knob = lab.locator(".lab-knob", has=lab.page.locator("label", has_text=re.compile(r"^\s*lr(\s|$)"))).last
    return knob.locator("input[type=text]").first


def session(server: Server) -> dict[str, Any]:
    """The one session of the Lab."""
    (found,) = server.ask("api/sessions")
    return found


def remembered(server: Server, text: str) -> None:
    """Until JupyterLab has saved its layout, which it does a moment after each change."""
    wait_until(lambda: text in str(server.ask("lab/api/workspaces/default")), what=f"{text} in the saved layout")


def test_the_lab_has_a_tile_survives_a_reload_and_outlives_its_kernel(new_page: Open, server: Server, run: Run) -> None:
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
    page.evaluate("window.jupyterapp.commands.execute('workbench:open')")
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
    page.evaluate("window.jupyterapp.commands.execute('workbench:open')")
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


def nothing_lies_over_the_curves(lab: Locator) -> None:
    """Of a Lab without a kernel; its forms and its table are inert."""
    expect(lab.locator(".wb-dock-cover")).to_be_hidden()
    for inert in (".lab-composer", ".lab-runs"):
        assert lab.locator(inert).first.evaluate("one => Boolean(one.closest('[inert]'))")
    plot = lab.locator(".lab-watch .u-over").first
    plot.hover()  # fails where something lies over it
    assert plot.evaluate("one => !one.closest('[inert]')")


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
