"""Text of a recipe that is launched as soon as it is typed: the run trains what stood there when Launch was pressed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.jupyter import Notebook
from tests.browser.lab import write_lab
from tests.browser.servers import Server
from tests.tiny_runs import wait_until
from workbench.client.run import Run
from workbench.client.run_list import runs

pytestmark = pytest.mark.browser
BUSY = "import time; time.sleep(1.5)"
"""A cell in which the kernel takes no message: of edits meanwhile the page sends the first and holds others back."""


def without_seed(page: Page) -> Locator:
    """Return the JSON with nothing where the seed stands, and the caret there."""
    page.locator(".lab-composer").get_by_role("button", name="JSON").click()
    area = page.get_by_label("the recipe as JSON")
    area.fill(re.sub(r'"seed": \d+', '"seed": ', area.input_value()))
    place = area.input_value().index('"seed": ') + len('"seed": ')
    expect(page.locator(".lab-verdict")).to_contain_text("cannot run")
    area.evaluate("(area, place) => { area.focus(); area.setSelectionRange(place, place); }", place)
    return area


def launched(page: Page, server: Server, before: int) -> Run:
    """The newest run, once there is one more."""
    wait_until(lambda: len(runs(server.runs)) == before + 1, seconds=60, what="the launch")
    return runs(server.runs)[0]


@pytest.mark.extended
@pytest.mark.parametrize("way", ["button", "keys"])
def test_what_was_typed_last_is_what_trains(page: Page, server: Server, corpus: Path, way: str) -> None:
    name = f"texts-{way}.ipynb"
    write_lab(server, corpus, name, more=[BUSY])
    notebook = Notebook(page, server, name)
    notebook.hide_sidebar()
    notebook.run(0)
    composer = page.locator(".lab-composer")
    composer.get_by_label("preset", exact=True).select_option("pocket")
    expect(composer).to_contain_text("Two thin layers on a small text")
    before = len(runs(server.runs))
    area = without_seed(page)
    busy(notebook)
    area.evaluate("area => area.focus()")
    page.keyboard.type("4")
    page.wait_for_timeout(400)  # its draft is sent
    page.keyboard.type("1")
    if way == "button":
        page.locator(".lab-launch").click()
    else:
        page.keyboard.press("Tab")
        page.keyboard.press("Control+Enter")
    run = launched(page, server, before)
    try:
        assert run.recipe.seed == 41
        expect(page.locator(".lab-runs .lab-line").first).to_contain_text("pocket")
        expect(page.locator(".lab-verdict")).to_contain_text("applied and launched pocket")
    finally:
        run.stop()


def busy(notebook: Notebook) -> None:
    """Begin the second cell, and do not wait for its end."""
    notebook.cell(1).locator(".cm-content").click()
    notebook.page.keyboard.press("Control+Enter")
    expect(notebook.cell(1).locator(".jp-InputPrompt")).to_have_text("[*]:")
