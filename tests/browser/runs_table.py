"""The table of runs in a page: how it is opened, and its parts."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from tests.browser.jupyter import Notebook, write_notebook
from tests.browser.servers import Server


def open_table(page: Page, server: Server, name: str, lab: str = "Lab()") -> Notebook:
    """The Lab in the second cell, the imports done in the first."""
    write_notebook(server.root / name, ["import pathlib\nfrom workbench.jupyter.lab.lab import Lab", lab])
    notebook = Notebook(page, server, name)
    notebook.hide_sidebar()
    notebook.run(0)
    return notebook


def names(page: Page) -> Locator:
    """Names of the rows in the page, from above."""
    return page.locator(".lab-runs td.lab-name")


def line(page: Page, number: int) -> Locator:
    """The row of one run."""
    return page.locator(f'.lab-runs .lab-line:has(.lab-name :text-is("run {number}"))')


def action(page: Page, name: str) -> Locator:
    """A button of the bar."""
    return page.get_by_role("toolbar", name="actions on the selected runs").get_by_role("button", name=name)


def chosen(page: Page) -> Locator:
    """Say how many runs are selected."""
    return page.locator(".lab-picked")


def in_sight(page: Page) -> None:
    """Until the table has its runs, and all of it can be seen."""
    expect(page.locator(".lab-runs")).to_have_count(1)
    expect(chosen(page)).to_have_text("none selected")
    page.locator(".lab-below").scroll_into_view_if_needed()
    expect(page.locator(".lab-runs .lab-line").first).to_be_visible()
