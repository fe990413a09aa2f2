"""A race of the composed recipe, from the form to its verdict, with real training; and a sweep clicked at meanwhile."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import RESULTS
from tests.browser.jupyter import Notebook
from tests.browser.lab import knob, open_lab
from tests.browser.looks import soon
from tests.browser.servers import Server
from tests.experiments.sweep import conftest as sweeping
from tests.forecasting.machine_rates import RATES
from tests.run_folders import kill_processes_of
from tests.tiny_runs import tiny_recipe
from workbench.experiments.experiment_folder import RaceFolder
from workbench.experiments.race.race import Race
from workbench.experiments.sweep.sweep import Sweep
from workbench.experiments.sweep.sweep_plan import plan_sweep as enter_sweep

pytestmark = pytest.mark.browser
STEPS = 60
"""In which next tokens of the small text are learned at a high rate, and half as well at a third of it."""
PATIENCE_MS = 300_000
"""Sixteen runs of a second each, on a machine that has as much else to do as it likes."""


@pytest.fixture
def sweep(corpus: Path, server: Server) -> Sweep:
    """One that has ended, of which nothing was trained."""
    recipe = tiny_recipe(corpus, steps=200)
    return sweeping.held(enter_sweep(recipe, sweeping.SPACE, runs_dir=server.runs, rates=RATES, name="rates"))


@pytest.fixture(autouse=True)
def _nobody_goes_on(server: Server) -> Iterator[None]:
    yield
    kill_processes_of(RaceFolder.root(server.runs), server.runs)


def start_race(page: Page, server: Server, corpus: Path, name: str) -> tuple[Notebook, Locator]:
    """Compose in the Lab and start a race from the form; returns the notebook and the race's line of the table."""
    # In bf16, in which the session knows the machine: nothing is measured first.
    pocket = tiny_recipe(corpus, steps=STEPS, name="pocket").with_(
        objective="causal", execution={"precision": "bf16"}, optimizer={"lr": 3e-3}
    )
    notebook = open_lab(page, server, corpus, "race.ipynb", pocket)
    page.locator(".lab-whole").evaluate("lab => lab.scrollIntoView()")
    page.locator(".lab-composer").get_by_label("preset", exact=True).select_option("pocket")
    rate = knob(page, "lr")
    expect(rate).to_have_value("0.003")
    rate.fill("0.012")
    rate.press("Enter")
    expect(page.locator(".lab-launching .lab-verdict")).to_contain_text("1 knob changed")

    page.get_by_role("button", name="Race…").click()
    form = page.get_by_role("dialog", name="Race the composed recipe")
    form.get_by_label("seeds").fill("4")
    form.get_by_label("budget of each run").fill(f"{STEPS} steps")
    form.get_by_label("name of the race").fill(name)
    expect(form.get_by_role("status")).to_contain_text("16 runs (8 of the 2 arms on 4 seeds", timeout=PATIENCE_MS)
    expect(form.get_by_role("status")).to_contain_text("mine differs in optimizer.lr 0.003 → 0.012")
    start = form.get_by_role("button", name="Start race")
    expect(start).to_be_enabled()
    start.click()
    expect(form).to_be_hidden()
    line = page.locator(".lab-runs .lab-together", has_text=f"race {name}")
    expect(line).to_be_visible()
    return notebook, line


def test_a_race_is_started_from_the_form_and_opened(page: Page, server: Server, corpus: Path, sweep: Sweep) -> None:
    notebook, line = start_race(page, server, corpus, "begun")
    a_line_of_a_sweep(page, sweep)
    line.locator(".lab-open").click()
    said = page.locator(".lab-experiment .lab-experiment-lines")
    expect(said).to_contain_text(re.compile("next verdict after 4 seeds|judged on 4 seeds"))
    assert notebook.complaints == []


@pytest.mark.extended
def test_a_race_comes_to_its_verdict(page: Page, server: Server, corpus: Path) -> None:
    # It opens by itself: a press on its line would close it again.
    notebook, _ = start_race(page, server, corpus, "faster")
    panel = page.locator(".lab-experiment")
    said = panel.locator(".lab-experiment-lines")
    expect(said).to_contain_text("mine is better than pocket by", timeout=PATIENCE_MS)
    expect(said).to_contain_text("judged on 4 seeds")
    expect(panel.locator(".lab-experiment-status")).to_have_text("finished")
    expect(panel.locator(".js-plotly-plot .scatterlayer .point").first).to_be_visible()
    soon(lambda: below(panel), lambda pixels: pixels <= 0)
    page.screenshot(path=RESULTS / "lab-race-verdict.png")
    race = Race(RaceFolder.ids(server.runs)[-1], server.runs)  # of a second try: the first one's is there, too
    assert (race.status, race.verdicts["mine"].verdict, len(race.rows)) == ("finished", "better", 16)
    assert notebook.complaints == []


def below(panel: Locator) -> float:
    """Count the picture's pixels below what its pane shows."""
    end = "node => node.getBoundingClientRect().bottom"
    picture, pane = panel.locator(".js-plotly-plot"), panel.page.locator(".lab-watch")
    return float(picture.evaluate(end)) - float(pane.evaluate(end))


def a_line_of_a_sweep(page: Page, sweep: Sweep) -> None:
    """A click on a line of parallel coordinates picks its point, whose run opens."""
    page.locator(".lab-runs .lab-together", has_text="sweep rates").locator(".lab-open").click()
    panel = page.locator(".lab-experiment")
    point = panel.get_by_label("point", exact=True)
    expect(point).to_have_value(str(sweep.best))
    panel.get_by_label("picture", exact=True).select_option(label="all knobs at once")
    axes = panel.locator(".parcoords .y-axis .axis path.domain")
    expect(axes).to_have_count(3)
    panel.locator(".lab-experiment-figure").scroll_into_view_if_needed()
    worst = max(sweep.rows, key=lambda row: row["score"])["point"]
    hover_the_highest(page, axes)
    page.mouse.down()
    page.mouse.up()
    expect(point).to_have_value(str(worst))
    panel.get_by_role("button", name="Watch run").click()
    expect(page.locator(".lab-watch .wb-run")).to_have_count(1)
    expect(panel).to_have_count(0)


def hover_the_highest(page: Page, axes: Locator) -> None:
    """Bring the pointer onto the highest of the lines that end at the last axis, wherever it is drawn."""
    last, before = (axes.nth(number).bounding_box() for number in (2, 1))
    assert last is not None
    assert before is not None
    figure = page.locator(".lab-experiment .js-plotly-plot")
    figure.evaluate(
        "node => { node.on('plotly_hover', () => { node.dataset.line = 'hovered'; });"
        " node.on('plotly_unhover', () => { delete node.dataset.line; }); }"
    )
    # Beside the axis, which takes the pointer for itself, and behind where lines cross.
    x = last["x"] - 0.1 * (last["x"] - before["x"])
    for y in range(int(last["y"]), int(last["y"] + last["height"])):
        page.mouse.move(x, y)
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        if figure.get_attribute("data-line") == "hovered":
            return
    raise AssertionError("no line is under the pointer anywhere")
