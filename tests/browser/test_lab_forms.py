"""The Lab's forms in a page: they keep their place and their room, launch once, and outlive their kernel."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import RESULTS, Open
from tests.browser.jupyter import Notebook, be_too_busy_for_anywidget
from tests.browser.lab import knob, open_lab
from tests.browser.looks import soon, still
from tests.browser.servers import Server, find_kernel
from tests.tiny_runs import wait_until, yield_to_others
from workbench.client.run_list import runs
from workbench.store.state import FINAL

pytestmark = pytest.mark.browser
SCREENS = {"desk": (1440, 900), "laptop": (1280, 720), "150%": (960, 600)}
MOST_STOPS = 60
"""Of the keyboard, with two axes open: 79 were counted once."""


@pytest.mark.extended
def test_forms(new_page: Open, server: Server, corpus: Path) -> None:
    """One Lab for all of it, in a page of its own: JupyterLab asks about a dead kernel when it likes."""
    page = new_page()
    notebook = open_lab(page, server, corpus)
    for name, (width, height) in SCREENS.items():
        page.set_viewport_size({"width": width, "height": height})
        page.locator(".lab-whole").evaluate("lab => lab.scrollIntoView()")
        nothing_moves(page, name)
    page.set_viewport_size({"width": 1440, "height": 900})
    stops = page.locator(".lab-compose :is(button, input, select, textarea, [tabindex])").evaluate_all(
        "all => all.filter(one => one.tabIndex >= 0 && !one.disabled && one.checkVisibility()).length"
    )
    assert stops <= MOST_STOPS
    enter_leads_to_what_was_searched(page)
    details_open_beside(page)
    a_border_says_where_it_is(page)
    a_choice_unfolds(page)
    one_launch(page, server)
    another_kernel(page, server, notebook)


def place(one: Locator) -> dict[str, float]:
    """Return where it is."""
    found = one.bounding_box()
    assert found is not None
    return dict(found)


def nothing_moves(page: Page, screen: str) -> None:
    """The form has half of its column, and an error leaves the knob it is about, and all around, where it was."""
    form, column = page.locator(".lab-sections"), page.locator(".lab-compose")
    whole, room = still(page, lambda: [place(one)["height"] for one in (column, form)])
    assert room >= 0.5 * whole, screen
    heads = knob(page, "heads")
    heads.scroll_into_view_if_needed()
    fixed = [heads, form, page.locator(".lab-forecast"), page.locator(".lab-launch"), page.locator(".lab-below")]
    before = still(page, lambda: [place(one) for one in fixed])
    heads.fill("5")
    heads.press("Enter")
    expect(page.locator(".lab-verdict")).to_contain_text("cannot run")
    expect(page.locator(".lab-composer .lab-hint")).to_contain_text("5 heads do not divide width 256")
    assert still(page, lambda: [place(one) for one in fixed]) == before, screen
    says_why_below(page, heads, "5 heads do not divide width 256")
    # A field that cannot be read hides no other's error.
    rate = knob(page, "lr")
    rate.fill("banana")
    rate.press("Tab")
    says_why_below(page, rate, "must be a number > 0 and <= 100, got 'banana'")
    expect(page.locator(".lab-composer .lab-error")).to_have_count(2)
    page.screenshot(path=RESULTS / f"forms-{screen}.png")
    rate.fill("0.0015")
    # What is said of the text before is not said of this one.
    expect(page.locator(".lab-composer .lab-being-typed > .lab-error")).to_be_hidden()
    rate.press("Enter")
    heads.scroll_into_view_if_needed()
    heads.fill("4")
    heads.press("Enter")
    expect(page.locator(".lab-verdict")).to_contain_text("ready")
    # The page itself was scrolled to the boxes: what counts is where all stands in the Lab.
    page.locator(".lab-whole").evaluate("lab => lab.scrollIntoView()")
    after = still(page, lambda: [place(one) for one in fixed])
    moved = after[1]["y"] - before[1]["y"]
    assert after[1:] == [{**each, "y": pytest.approx(each["y"] + moved)} for each in before[1:]], screen
    a_knob_far_off_says_so_and_is_no_error(page, screen)


def a_knob_far_off_says_so_and_is_no_error(page: Page, screen: str) -> None:
    """Below its box, as an error would stand there."""
    rate = knob(page, "lr")
    rate.fill("90")
    rate.press("Enter")
    doubt = page.locator(".lab-composer .lab-doubt")
    expect(doubt).to_contain_text(re.compile(r"^90 is [\d,]+ times what \w+ begins with"))
    expect(rate).to_have_attribute("aria-describedby", re.compile("lab-note-"))
    assert rate.get_attribute("aria-invalid") is None
    doubt.scroll_into_view_if_needed()
    page.screenshot(path=RESULTS / f"forms-doubt-{screen}.png")
    rate.fill("0.0015")
    rate.press("Enter")
    expect(doubt).to_have_count(0)
    page.locator(".lab-whole").evaluate("lab => lab.scrollIntoView()")


def a_border_says_where_it_is(page: Page) -> None:
    """By keys, and back by a double click."""
    border, column = page.get_by_role("separator", name="Width of the forms"), page.locator(".lab-compose")
    share = "one => Math.round(100 * one.offsetWidth / one.closest('.lab-body').offsetWidth)"
    border.focus()
    first = still(page, lambda: column.evaluate(share))
    expect(border).to_have_attribute("aria-valuenow", str(first))
    border.press("ArrowRight")
    soon(lambda: column.evaluate(share), first + 2)
    expect(border).to_have_attribute("aria-valuenow", str(first + 2))
    border.dblclick()
    soon(lambda: column.evaluate(share), first)
    expect(border).to_have_attribute("aria-valuenow", str(first))


def says_why_below(page: Page, box: Locator, why: str) -> None:
    """Whole, right below its box, and all of it in sight."""
    error = box.locator("xpath=ancestor::*[contains(@class, 'lab-knob')][1]/*[contains(@class, 'lab-error')]")
    expect(error).to_contain_text(why)
    still(page, lambda: place(error))
    error.scroll_into_view_if_needed()
    above, below = place(box), place(error)
    assert 0 <= below["y"] - above["y"] - above["height"] < 12
    assert error.locator(".widget-html-content").evaluate(
        "one => one.scrollHeight <= one.parentElement.clientHeight + 1"
    )
    assert below["height"] >= 12


def enter_leads_to_what_was_searched(page: Page) -> None:
    """To the knob of that very name, which stands first."""
    search = page.locator(".lab-search input")
    search.fill("lr")
    expect(page.locator(".lab-sections .lab-section .lab-toggle").first).to_have_text(re.compile("Optimizer"))
    search.press("Enter")
    expect(page.locator(".lab-composer").get_by_label("lr", exact=True)).to_be_focused()
    search.fill("")
    expect(page.locator(".lab-found")).to_have_count(0)


def details_open_beside(page: Page) -> None:
    """As tall as the form, scrolling by themselves; Escape leads back to the button."""
    more = page.get_by_role("button", name="Details")
    more.click()
    panel = page.locator(".lab-card-panel")
    expect(panel).to_contain_text("Memory for training")
    beside, form = still(page, lambda: [place(one) for one in (panel, page.locator(".lab-sections"))])
    assert beside["height"] == pytest.approx(form["height"], abs=2)
    assert beside["width"] > 300
    page.screenshot(path=RESULTS / "forms-details.png")
    expect(panel.locator(".wb-forecast")).to_be_focused()
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(more).to_be_focused()


def a_choice_unfolds(page: Page) -> None:
    """Picked by the user, not by a preset."""
    depth = page.locator(".lab-section").filter(has=page.locator(".lab-toggle", has_text="Depth"))
    toggle = depth.locator(".lab-toggle")
    expect(toggle).to_have_attribute("aria-expanded", "false")
    depth.locator(".lab-heading select").select_option("progressive_drop")
    expect(toggle).to_have_attribute("aria-expanded", "true")


def one_launch(page: Page, server: Server) -> None:
    """By key, twice in a second: one run. Once more: it asks."""
    page.locator(".lab-composer").get_by_label("preset", exact=True).select_option("pocket")
    expect(page.locator(".lab-composer")).to_contain_text("Two thin layers on a small text")
    seed = knob(page, "seed")
    seed.fill("3")
    seed.press("Control+Enter")  # what is typed belongs to it
    page.keyboard.press("Control+Enter")
    expect(page.locator(".lab-verdict")).to_contain_text("launched once")
    expect(page.locator(".lab-runs .lab-line")).to_have_count(1)
    (run,) = runs(server.runs)
    assert run.recipe.seed == 3
    page.wait_for_timeout(1000)
    size = page.viewport_size
    assert size is not None
    page.set_viewport_size({"width": size["width"], "height": 360})  # the window of a page that is magnified
    page.locator(".lab-composer").get_by_label("preset", exact=True).scroll_into_view_if_needed()
    page.keyboard.press("Control+Enter")
    expect(page.locator(".lab-launch")).to_contain_text("Launch again")
    verdict = page.locator(".lab-verdict")
    expect(verdict).to_contain_text(f"press again to start a second run: {run.recipe.name} has this very recipe")
    expect(verdict).to_be_in_viewport()
    page.set_viewport_size(size)
    assert len(runs(server.runs)) == 1
    wait_until(lambda: run.status == "running", seconds=120)
    yield_to_others(run)


def another_kernel(page: Page, server: Server, notebook: Notebook) -> None:
    """One notice, nothing that could be pressed in vain, and the next Lab of this cell goes on."""
    knob(page, "seed").fill("4")
    knob(page, "seed").press("Enter")
    expect(page.locator(".lab-verdict")).to_contain_text("1 knob changed")
    (kernel,) = server.ask("api/kernels")
    find_kernel(kernel["id"]).kill()
    # JupyterLab tells it in a dialog, sometimes in two, and starts another kernel, which knows nothing of the Lab.
    accept = page.locator(".jp-Dialog button.jp-mod-accept")
    accept.first.click()
    page.add_locator_handler(accept.first, lambda button: button.click())
    notice = page.locator(".lab-ended")
    expect(notice).to_contain_text("Your runs go on")
    expect(page.locator(".lab-composer")).to_have_js_property("inert", True)
    icons = page.locator(".lab-whole .jupyter-widgets-disconnected").evaluate_all(
        "all => all.map(one => getComputedStyle(one, '::before').content).filter(icon => icon.includes('\uf127'))"
    )
    assert icons == []
    page.screenshot(path=RESULTS / "forms-ended.png")
    notebook.wait_for_kernel()
    # Our widgets hear their kernel all the same (connected.js).
    be_too_busy_for_anywidget(page)
    notice.get_by_role("button", name="Start it again").click()
    expect(notice).to_have_count(0)
    expect(page.locator(".lab-verdict")).to_contain_text("as it was when the kernel ended")
    expect(knob(page, "seed")).to_have_value("4")
    expect(page.locator(".lab-runs .lab-line")).to_have_count(1)
    for run in runs(server.runs):
        run.stop()
    wait_until(lambda: all(run.status in FINAL for run in runs(server.runs)), seconds=120)
