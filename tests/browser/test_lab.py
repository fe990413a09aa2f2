"""The Lab as a user meets it: pick a preset, turn knobs, be told what cannot be, launch, watch, stop."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import RESULTS
from tests.browser.jupyter import Notebook, write_notebook
from tests.browser.lab import assert_fit_in_both_themes, open_lab, stop_selected
from tests.browser.looks import expect_curve, soon, unfit
from tests.browser.servers import Server
from tests.tiny_runs import wait_until, yield_to_others
from workbench.client.run_list import runs
from workbench.store.folder import read_object

pytestmark = pytest.mark.browser


class Compose:
    """The left side of the Lab, by the words a user reads."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.root = page.locator(".lab-composer")

    def section(self, name: str) -> Locator:
        """One axis, opened."""
        found = self.root.locator(".lab-section").filter(has=self.page.locator(".lab-toggle", has_text=name))
        toggle = found.locator(".lab-toggle")
        if toggle.get_attribute("aria-expanded") != "true":
            toggle.click()
            expect(toggle).to_have_attribute("aria-expanded", "true")
        return found

    def pick(self, section: str, kind: str) -> None:
        """Another choice of an axis."""
        self.section(section).locator(".lab-heading select").select_option(kind)

    def knob(self, section: str, label: str) -> Locator:
        """The row of one knob; ``label`` is a pattern, which tells "compile" from "compile scope"."""
        # A unit may follow the name. The last: a choice within a choice holds the labels of its own knobs as well.
        name = self.page.locator("label", has_text=re.compile(rf"^\s*{label}(\s|$)"))
        return self.section(section).locator(".lab-knob").filter(has=name).last

    def enter(self, section: str, label: str, text: str) -> None:
        """Type a value and leave the box."""
        box = self.knob(section, label).locator("input[type=text], textarea").first
        box.fill(text)
        box.press("Tab")


def make_tiny(compose: Compose, text: Path) -> None:
    """Knobs of a recipe that trains at once on a small text."""
    compose.pick("Data", "files")
    compose.enter("Data", "paths", str(text))
    compose.enter("Data", "sequence length", "32")
    compose.enter("Data", "batch size", "16")
    compose.enter("Data", "vocabulary size", "128")
    compose.enter("Architecture", "layers", "2")
    compose.enter("Architecture", "width", "64")
    compose.knob("Execution", r"compile\s*$").locator("input[type=checkbox]").uncheck()
    compose.enter("Execution", "threads", "1")
    compose.enter("Budget", "amount", "20000")
    compose.enter("Budget", "evaluation tokens", "2048")


def letters_are_no_notebook_commands(page: Page, notebook: Notebook) -> None:
    """Keys that would insert a cell in command mode; a section opens and closes with the keyboard alone."""
    expect(page.locator(".lab-composer")).to_have_attribute("role", "group")
    toggle = page.locator(".lab-toggle").first
    for control in (page.locator(".lab-composer").get_by_label("preset", exact=True), toggle):
        control.focus()
        page.keyboard.press("b")
        page.keyboard.press("a")
    was = toggle.get_attribute("aria-expanded")
    page.keyboard.press("Space")
    expect(toggle).not_to_have_attribute("aria-expanded", str(was))
    # Shown by now: commands are carried out in their order.
    expect(notebook.panel.locator(".jp-Cell")).to_have_count(1)


SLOW_PICKS = """
import time
import workbench as wb
from workbench.jupyter.compose import composer
recipe_of = composer.recipe_of
composer.recipe_of = lambda *asked: (time.sleep(1), recipe_of(*asked))[1]
wb.Lab()
""".strip()
"""A Lab that answers a pick a second late, as on a busy machine: the form of before is typed into meanwhile."""


def what_is_typed_after_a_pick_stays(compose: Compose) -> None:
    """Sent or not, and though the pick brings a form of another kind."""
    presets, verdict = compose.root.get_by_label("preset", exact=True), compose.root.locator(".lab-verdict")
    kind = compose.section("Optimizer").locator(".lab-heading select")
    presets.select_option("lans")
    compose.enter("Optimizer", "lr", "0.004")
    expect(kind).to_have_value("lans")
    expect(verdict).to_contain_text("1 knob changed")
    box = compose.knob("Optimizer", "lr").locator("input[type=text]").first
    expect(box).to_have_value("0.004")
    presets.select_option("baseline")
    box.fill("0.00")
    expect(kind).to_have_value("adamw")
    expect(box).to_be_focused()
    expect(box).to_have_value("0.00")
    compose.page.keyboard.type("7")
    compose.page.keyboard.press("Tab")
    expect(verdict).to_contain_text("1 knob changed")
    expect(box).to_have_value("0.007")


@pytest.mark.extended
def test_what_is_typed_after_a_pick_stays(page: Page, server: Server) -> None:
    write_notebook(server.root / "picks.ipynb", [SLOW_PICKS])
    notebook = Notebook(page, server, "picks.ipynb")
    notebook.hide_sidebar()
    notebook.run(0)
    what_is_typed_after_a_pick_stays(Compose(page))


def test_compose_launch_watch_and_stop(page: Page, server: Server, corpus: Path) -> None:
    write_notebook(server.root / "lab.ipynb", [SLOW_PICKS])
    notebook = Notebook(page, server, "lab.ipynb")
    notebook.hide_sidebar()
    notebook.run(0)
    compose = Compose(page)
    letters_are_no_notebook_commands(page, notebook)
    launch = page.locator(".lab-compose").get_by_role("button", name="Launch")
    verdict = compose.root.locator(".lab-verdict")

    # Right after another one was picked by its first letter, and typed before either stands in the form.
    compose.root.get_by_label("preset", exact=True).select_option("fast")
    compose.enter("Optimizer", "lr", "0.004")
    expect(verdict).to_contain_text("1 knob changed")
    expect(compose.knob("Optimizer", "lr")).to_have_class(has_class("lab-changed"))

    compose.enter("Architecture", "heads", "3")
    heads = compose.knob("Architecture", "heads")
    expect(heads.locator(".lab-error")).to_contain_text("3 heads do not divide width")
    expect(heads.locator("input").first).to_have_attribute("aria-invalid", "true")
    expect(launch).to_be_disabled()
    heads.scroll_into_view_if_needed()
    page.screenshot(path=RESULTS / "lab-error.png")
    compose.enter("Architecture", "heads", "2")
    expect(heads.locator(".lab-error")).to_have_count(0)
    expect(launch).to_be_enabled()

    make_tiny(compose, corpus)
    # The last of the knobs; the verdict was "ready" before.
    expect(compose.knob("Budget", "evaluation tokens")).to_have_class(has_class("lab-changed"))
    expect(verdict).to_contain_text("ready")
    launch.click()
    line = page.locator(".lab-runs .lab-line").first
    expect(line.locator(".lab-status")).to_have_text("running")
    run = runs(server.runs)[0]
    assert run.recipe.optimizer.lr == 0.004
    assert run.recipe.architecture.heads == 2
    expect(page.locator(".lab-watch .wb-monitor .wb-pill")).to_have_text("running")
    yield_to_others(run)
    expect(page.locator(".lab-watch .wb-area canvas").first).to_be_visible()
    expect_curve(page.locator(".lab-watch .wb-monitor"))
    page.locator(".lab-whole").evaluate("lab => lab.scrollIntoView()")
    page.screenshot(path=RESULTS / "lab-running.png")
    # The forecast beside what is measured, all of it, where there is little room.
    expect(page.locator(".lab-forecast .wb-forecast-beside")).to_contain_text("now")
    page.set_viewport_size({"width": 1280, "height": 720})
    box = page.locator(".lab-forecast")
    soon(lambda: box.evaluate("box => box.scrollHeight - box.clientHeight"), 0)
    page.screenshot(path=RESULTS / "lab-forecast.png")

    stop_selected(page)
    expect(line.locator(".lab-status")).to_have_text("stopped")
    # A screen reader would read the states of all lines aloud, without a name, and again as they are scrolled.
    expect(line.locator(".lab-status")).not_to_have_attribute("aria-live", "polite")
    expect(page.locator(".lab-actions").get_by_role("button", name="Stop")).to_be_disabled()
    assert run.status == "stopped"
    assert run.state.step > 0
    # One key watches a run of the table, and none is a command of the notebook.
    line.focus()
    page.keyboard.press("b")
    watched = page.locator(".lab-watch .wb-run")
    expect(watched).to_have_count(1)
    page.keyboard.press("Enter")
    expect(watched).to_have_count(0)
    page.keyboard.press("Enter")
    expect(watched).to_have_count(1)
    expect(notebook.panel.locator(".jp-Cell")).to_have_count(1)
    assert notebook.complaints == []


def has_class(name: str) -> re.Pattern[str]:
    """A pattern for a class among others."""
    return re.compile(rf"(^|\s){name}(\s|$)")


def test_where_it_runs_is_a_row_that_says_what_speaks_against_it(page: Page, server: Server, corpus: Path) -> None:
    open_lab(page, server, corpus)
    page.get_by_label("preset", exact=True).select_option("pocket")
    launch = page.locator(".lab-compose").get_by_role("button", name="Launch")
    place = page.locator(".lab-compose").get_by_label("where it runs", exact=True)
    expect(place).to_have_value("local")
    place.fill("local:processes=99")
    place.press("Tab")
    expect(launch).to_be_disabled()
    expect(page.locator(".lab-verdict").first).to_contain_text("99")
    expect(page.locator(".lab-compose .lab-error")).to_contain_text("99")
    place.scroll_into_view_if_needed()
    assert_fit_in_both_themes(page, "a place that refuses", "lab-place", ".lab-compose")
    page.set_viewport_size({"width": 900, "height": 800})
    place.scroll_into_view_if_needed()
    page.screenshot(path=RESULTS / "lab-place-900.png")
    assert unfit(page) == []
    place.fill("local:processes=2,oversubscribe=true")
    place.press("Tab")
    expect(launch).to_be_enabled()
    before = {run.id for run in runs(server.runs)}
    launch.click()
    wait_until(lambda: len(runs(server.runs)) > len(before), 60, "the launched run")
    (run,) = [run for run in runs(server.runs) if run.id not in before]
    wait_until(lambda: read_object(run.folder.launched).get("knobs"), 60, "the place of the launch")
    assert read_object(run.folder.launched)["knobs"] == {"processes": 2, "oversubscribe": True}
    run.stop()


@pytest.mark.extended
def test_the_speed_panel_shows_which_process_waits(page: Page, server: Server, corpus: Path) -> None:
    open_lab(page, server, corpus)
    page.get_by_label("preset", exact=True).select_option("pocket")
    place = page.locator(".lab-compose").get_by_label("where it runs", exact=True)
    place.fill("local:processes=2,oversubscribe=true")
    place.press("Tab")
    page.locator(".lab-compose").get_by_role("button", name="Launch").click()
    expect(page.locator(".wb-run")).to_be_visible(timeout=60_000)
    shown = page.get_by_label("What the speed panel shows")
    expect(shown.locator("option[value=ranks]")).to_be_attached(timeout=120_000)
    shown.select_option("ranks")
    legend = page.locator(".wb-panel-speed .wb-legend")
    for process in range(2):
        expect(legend).to_contain_text(re.compile(rf"process {process} waits [\d.]+ ms \(median\)"))
    legend.scroll_into_view_if_needed()
    page.locator(".wb-panel-speed").screenshot(path=RESULTS / "lab-ranks.png")
    runs(server.runs)[0].stop()
