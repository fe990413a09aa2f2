"""Races, sweeps, tunings in the Lab: opened from the table, read, clicked at, cancelled, closed; the form of a race."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.axe import violations
from tests.browser.conftest import RESULTS
from tests.browser.jupyter import Notebook, choose_theme, write_notebook
from tests.browser.looks import unfit
from tests.browser.servers import Server
from tests.experiments.race import conftest as racing
from tests.experiments.sweep import conftest as sweeping
from tests.experiments.tune import conftest as tunings
from tests.forecasting.machine_rates import RATES
from tests.tiny_runs import tiny_recipe
from workbench.experiments.race.race import Race
from workbench.experiments.race.race_plan import plan_race as enter_race
from workbench.experiments.sweep.sweep import Sweep
from workbench.experiments.sweep.sweep_plan import plan_sweep as enter_sweep
from workbench.experiments.tune.tune import Tuning
from workbench.experiments.tune.tuning_plan import plan_tuning as enter_tuning

pytestmark = pytest.mark.browser
SCREEN: ViewportSize = {"width": 1280, "height": 720}


@pytest.fixture
def race(corpus: Path, tmp_path: Path) -> Iterator[Race]:
    """One that goes on, of which nothing trains: its first look is over, and the test drives it."""
    tiny = tiny_recipe(corpus, steps=200)
    arms = {"baseline": tiny, "mine": tiny.with_(optimizer={"lr": 2e-3})}
    plan = enter_race(arms, "200 steps", runs_dir=tmp_path / "runs", rates=RATES, seeds=6, name="faster")
    folder = racing.written(plan)
    # Better by about as much as seeds differ: it takes more of them.
    starter = racing.Starter(plan, lambda entry: 2.0 - 0.03 * (entry.arm == "mine") * (1 + entry.seed % 2 * -3))
    with folder.driver_lock():
        while Race(folder).look().look == 4:
            Race(folder).advance(starter)
            starter.end_all()
        yield Race(folder)


@pytest.fixture
def sweep(corpus: Path, tmp_path: Path) -> Sweep:
    recipe = tiny_recipe(corpus, steps=200)
    return sweeping.held(enter_sweep(recipe, sweeping.SPACE, runs_dir=tmp_path / "runs", rates=RATES, name="rates"))


@pytest.fixture
def tuning(corpus: Path, tmp_path: Path) -> Tuning:
    recipe, axes = tiny_recipe(corpus, steps=200), {"architecture.layers": [2, 1]}
    return tunings.held(enter_tuning(recipe, "20 min", axes, runs_dir=tmp_path / "runs", rates=RATES, name="smaller"))


@pytest.mark.extended
def test_a_race_a_tuning_and_a_sweep_in_the_lab(
    page: Page, server: Server, race: Race, sweep: Sweep, tuning: Tuning
) -> None:
    write_notebook(
        server.root / "experiments.ipynb", [f"import workbench as wb\nwb.Lab(runs_dir={race.plan.runs_dir!r})"]
    )
    notebook = Notebook(page, server, "experiments.ipynb")
    page.set_viewport_size(SCREEN)
    notebook.hide_sidebar()
    notebook.run(0)
    page.locator(".lab-whole").evaluate("lab => lab.scrollIntoView()")
    panel = page.locator(".lab-experiment")
    title = panel.get_by_role("heading", level=3)

    # From its line and back by keyboard alone.
    line = page.locator(".lab-runs .lab-together", has_text="race faster")
    expect(line).to_contain_text("race faster · mine undecided (")
    best = page.locator(".lab-runs .lab-together", has_text="sweep rates")
    expect(best).to_contain_text(re.compile(rf"sweep rates · best \d\.\d+ nats: point {sweep.best} \("))
    page.locator(".lab-runs").screenshot(path=RESULTS / "lab-experiment-lines.png")
    line.focus()
    page.keyboard.press("Enter")
    expect(title).to_have_text("Race faster")
    expect(page.locator(".lab-watch .wb-monitor")).to_be_hidden()
    expect(panel.locator(".js-plotly-plot .scatterlayer").first).to_be_visible()
    expect(panel.locator(".lab-experiment-lines")).to_contain_text("Undecided: more seeds are training.")
    # In the table of arms and in that of verdicts.
    expect(panel.get_by_role("columnheader", name="time to the baseline's final score, forecast")).to_have_count(2)
    panel.get_by_role("button", name="As a table").press("Enter")
    # The table of arms has such a column, too; the numbers of the picture stand below it.
    expect(panel.get_by_role("columnheader", name="seconds, forecast").last).to_be_in_viewport()
    page.screenshot(path=RESULTS / "lab-race.png")
    assert violations(page, "race", roots=(".lab-experiment",)) == []
    assert unfit(page) == []
    panel.get_by_role("button", name="Report").press("Enter")
    report = page.get_by_role("dialog", name="Report of race faster")
    expect(report.frame_locator("iframe").get_by_role("heading", name="Verdicts")).to_be_visible()
    page.screenshot(path=RESULTS / "lab-race-report.png")
    # From within the frame, too, which keeps what is pressed in it.
    report.frame_locator("iframe").get_by_role("heading", name="Verdicts").click()
    page.keyboard.press("Escape")
    expect(report).to_be_hidden()

    # A click on the dot of a seed watches its run; from the list the keyboard does.
    panel.get_by_label("picture").select_option("differences")
    dot = panel.locator(".js-plotly-plot .points path.point").nth(1)
    expect(panel.locator(".js-plotly-plot .gtitle")).to_contain_text("Difference")
    dot.hover(force=True)
    dot.click(force=True)
    # Of several seeds in one place, the one that lies on top.
    watched = page.locator(".lab-watch .wb-run .wb-name")
    expect(watched).to_have_attribute("title", re.compile(r"-mine-s\d"))
    expect(panel).to_have_count(0)
    line.focus()
    page.keyboard.press("Enter")
    panel.get_by_label("run", exact=True).select_option("baseline seed 2")
    page.screenshot(path=RESULTS / "lab-race-dots.png")
    panel.get_by_role("button", name="Watch run").press("Enter")
    expect(watched.last).to_have_attribute("title", re.compile("-baseline-s2"))
    line.focus()
    page.keyboard.press("Enter")
    panel.get_by_role("button", name="Close").focus()
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(page.locator(".lab-watch .wb-monitor")).to_be_visible()
    expect(line).to_be_focused()

    page.keyboard.press("Enter")
    panel.get_by_role("button", name="Cancel…").click()
    question = panel.get_by_role("alertdialog")
    expect(question).to_contain_text("Cancel Race faster for good?")
    question.get_by_role("button", name="Let it go on").click()
    assert race.status == "racing"
    panel.get_by_role("button", name="Cancel…").click()
    question.get_by_role("button", name="Cancel this race").click()
    expect(panel.locator(".lab-experiment-status")).to_have_text("cancelled")
    assert race.status == "cancelled"

    # A tuning's runs stand in one line, and its panel shows what its race said.
    page.locator(".lab-runs .lab-together", has_text="tuning smaller").locator(".lab-open").click()
    expect(title).to_have_text("Tuning smaller")
    expect(panel.locator(".lab-experiment-lines")).to_contain_text("confirmed: architecture.layers 2 -> 1")
    expect(panel.locator(".js-plotly-plot .scatterlayer").first).to_be_visible()
    page.screenshot(path=RESULTS / "lab-tuning.png")
    expect(page.locator(".lab-runs .lab-together")).to_have_count(3)
    assert tuning.stage == "confirmed"
    assert unfit(page) == []

    # A sweep in its place; a click on a dot is a click on its point.
    page.locator(".lab-runs .lab-together", has_text="sweep rates").locator(".lab-open").click()
    expect(title).to_have_text("Sweep rates")
    point = panel.get_by_label("point", exact=True)
    expect(point).to_have_value(str(sweep.best))
    dots = panel.locator(".js-plotly-plot .points path.point")
    expect(dots).to_have_count(6)
    panel.locator(".lab-experiment-figure").scroll_into_view_if_needed()
    # The first of those that are beaten.
    dots.first.hover(force=True)
    dots.first.click(force=True)
    expect(point).not_to_have_value(str(sweep.best))
    picked = int(point.input_value())
    expect(page.locator(".lab-launching .lab-verdict")).to_contain_text(f"recipe of point {picked} of rates")
    expect(page.locator(".lab-picked")).to_contain_text("1 selected")
    choose_theme(page, "JupyterLab Dark")
    page.locator(".lab-whole").evaluate("lab => lab.scrollIntoView()")
    page.screenshot(path=RESULTS / "lab-sweep-dark.png")
    assert violations(page, "sweep, dark", roots=(".lab-experiment",)) == []
    panel.get_by_role("button", name="Watch run").click()
    expect(page.locator(".lab-watch .wb-run")).to_have_count(3)
    expect(panel).to_have_count(0)

    # What cannot be raced is said before anything begins.
    page.get_by_role("button", name="Race…").click()
    form = page.get_by_role("dialog", name="Race the composed recipe")
    expect(form.get_by_label("against")).to_be_focused()
    form.get_by_label("budget of each run").fill("2 fortnights")
    expect(form.get_by_role("status")).to_contain_text("2 fortnights")
    expect(form.get_by_role("button", name="Start race")).to_be_disabled()
    page.screenshot(path=RESULTS / "lab-race-form-dark.png")
    assert violations(page, "race form, dark", roots=(".lab-race",)) == []
    page.keyboard.press("Escape")
    expect(form).to_be_hidden()
    expect(page.get_by_role("button", name="Race…")).to_be_focused()
    choose_theme(page, "JupyterLab Light")
    assert notebook.complaints == []


@pytest.mark.extended
def test_a_sweep_in_a_cell_shows_one_picture(page: Page, server: Server, sweep: Sweep) -> None:
    """The interactive one; the static one is in what is saved, for whoever has no kernel."""
    code = f"from workbench.experiments.sweep.sweep import Sweep\nSweep({str(sweep.folder.path)!r}).watch()"
    write_notebook(server.root / "sweep.ipynb", [code])
    notebook = Notebook(page, server, "sweep.ipynb")
    page.set_viewport_size(SCREEN)
    notebook.hide_sidebar()
    notebook.run(0)
    live, static = page.locator(".lab-experiment .js-plotly-plot"), page.locator("img.wb-static-picture")
    expect(live).to_be_visible()
    expect(static).to_be_attached()
    expect(static).to_be_hidden()
    # The longest of the pictures is named whole.
    chosen = page.locator(".lab-experiment").get_by_label("picture", exact=True)
    expect(chosen.locator("option:checked")).to_have_text("score against seconds, forecast")
    words = "select => { const text = select.selectedOptions[0].text, context = document.createElement('canvas')"
    words += (
        ".getContext('2d'); context.font = getComputedStyle(select).font; return context.measureText(text).width; }"
    )
    # The arrow takes some 20 of them.
    assert chosen.evaluate("select => select.clientWidth") > chosen.evaluate(words) + 20
    expect(page.locator(".lab-experiment-ring")).to_be_visible()
    page.screenshot(path=RESULTS / "sweep-cell.png")
    # What opens does so below, and is scrolled to.
    page.get_by_role("button", name="Compose recipe").click()
    expect(page.locator(".lab-experiment-answer")).to_contain_text("open in the Lab below")
    expect(page.get_by_role("button", name="Launch", exact=True)).to_be_in_viewport()
    # Without its kernel's widgets the static one stands there.
    page.evaluate("document.querySelector('.lab-experiment .js-plotly-plot').remove()")
    expect(static).to_be_visible()
