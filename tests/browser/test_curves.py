"""The points of a schedule under mouse and keyboard, and the forecast beside it, in a real page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import violations
from tests.browser.conftest import RESULTS, Open
from tests.browser.jupyter import Notebook, write_notebook
from tests.browser.lab import open_axes
from tests.browser.looks import controls, soon, still, unfit
from tests.browser.servers import Server
from tests.tiny_runs import tiny_recipe

pytestmark = pytest.mark.browser

CELL = """
import ipywidgets, pathlib
from workbench.recipes.recipe import Recipe
from workbench.jupyter.compose.composer import Composer
from workbench.jupyter.compose.forecast_panel import ForecastPanel
from workbench.jupyter.page import Page
recipe = Recipe.from_json(pathlib.Path("tiny.json").read_text(encoding="utf-8"))
panel = ForecastPanel()
composer = Composer(recipe, changed=lambda: panel.show(composer.recipe))
panel.show(recipe)
both = ipywidgets.VBox([Page(), panel, composer])
both.add_class("lab-root")
both
""".strip()
SAID = "schedule = composer.recipe.optimizer.schedule\nprint(schedule.kind, schedule.model_dump())"


def box(page: Page, label: str) -> Locator:
    """The text box of a knob of the learning rate's schedule."""
    name = page.locator("label", has_text=re.compile(rf"^\s*{label}\b"))
    return page.locator(".lab-nested .lab-knob").filter(has=name).last.locator("input, textarea").first


def drag(page: Page, handle: Locator, dx: float, dy: float) -> None:
    """Take a handle with the mouse and let it go elsewhere."""
    # Waits until it stands still and can be reached.
    handle.hover()
    place = handle.bounding_box()
    assert place is not None
    x, y = place["x"] + place["width"] / 2, place["y"] + place["height"] / 2
    page.mouse.down()
    for part in (0.3, 0.6, 1.0):
        page.mouse.move(x + part * dx, y + part * dy)
    page.mouse.up()


@pytest.mark.extended
def test_points_are_moved_by_mouse_and_keyboard(new_page: Open, server: Server, corpus: Path) -> None:
    page = new_page()
    (server.root / "tiny.json").write_text(tiny_recipe(corpus, steps=200).to_json())
    write_notebook(server.root / "curves.ipynb", [CELL, SAID])
    notebook = Notebook(page, server, "curves.ipynb")
    notebook.hide_sidebar()
    notebook.run(0)
    open_axes(page, "Optimizer")
    curve = page.get_by_role("group", name="curve of optimizer.schedule")
    points = curve.get_by_role("slider")
    expect(curve.locator("polyline")).to_be_visible()
    expect(points).to_have_count(0)

    # The knobs cannot be a schedule: the curve waits.
    box(page, "hold").fill("2")
    box(page, "hold").press("Tab")
    expect(page.locator(".lab-error")).to_contain_text("must not exceed length")
    expect(curve).to_have_class(re.compile("lab-curve-stale"))

    page.locator(".lab-knob").filter(has=page.locator("label", has_text="schedule")).last.locator(
        "select"
    ).first.select_option("points")
    expect(points).to_have_count(4)
    second = points.nth(1)
    expect(second).to_have_attribute("aria-valuetext", re.compile("^10% of the budget, 20 of 200 steps, value 1 "))
    drag(page, second, 60, 40)
    expected = 0.1 + 60 / curve_width(curve)
    soon(
        lambda: float(re.findall(r"[\d.]+", box(page, "places").input_value())[1]),
        lambda place: abs(place - expected) < 0.01,
    )
    # What is typed moves the points.
    box(page, "places").fill("0\n0.25\n0.5\n1")
    box(page, "places").press("Tab")
    expect(second).to_have_attribute("aria-valuetext", re.compile("^25% of the budget, 50 of 200 steps"))
    # Letters are no notebook commands, arrows move: a step, ten steps.
    second.focus()
    for key in ("b", "ArrowRight", "Shift+ArrowRight"):
        page.keyboard.press(key)
    expect(box(page, "places")).to_have_value(re.compile(r"^0(.0)?\W+0.36\W"))
    expect(notebook.panel.locator(".jp-Cell")).to_have_count(2)

    plot = curve.locator(".lab-curve-plot")
    width = plot.evaluate("plot => plot.getBoundingClientRect().width")
    plot.dblclick(position={"x": 0.75 * width, "y": 20})
    expect(points).to_have_count(5)
    expect(points.nth(3)).to_be_focused()
    page.keyboard.press("Delete")
    expect(points).to_have_count(4)
    curve.scroll_into_view_if_needed()
    page.screenshot(path=RESULTS / "curves.png")
    expect(notebook.run(1)).to_have_text(re.compile("^points "))

    # Meanwhile the machine was measured, once for all tests; the numbers followed every change.
    expect(page.locator(".wb-line-of-all")).to_contain_text("tokens/s", timeout=240_000)
    expect(page.locator(".wb-forecast-old")).to_have_count(0)
    page.locator(".wb-forecast").get_by_role("button", name="Details").click()
    expect(page.locator(".wb-tiles")).to_contain_text(re.compile(r"steps\s*200"))
    page.locator(".wb-forecast input").fill("2.5")
    page.locator(".wb-forecast input").press("Tab")
    expect(page.locator(".wb-tiles")).to_contain_text("cost")
    page.screenshot(path=RESULTS / "forecast.png")
    assert violations(page, "curves and forecast") == []
    assert still(page, lambda: unfit(page)) == []
    assert [role for role, name in controls(page, ".lab-root") if not name] == []


def curve_width(curve: Locator) -> float:
    """Pixels from the beginning of the run to its end."""
    return float(curve.locator("line.axis").evaluate("line => line.x2.baseVal.value - line.x1.baseVal.value"))
