"""What a user does in JupyterLab: open a notebook, run cells, restart the kernel; and what the console said."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect, sync_playwright

from tests.browser.console import Console
from tests.browser.servers import Server

CELL_SECONDS = 60
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM_OPTIONS = ("--no-sandbox", "--disable-background-networking", "--disable-gpu", "--disable-dev-shm-usage")
# As a double click in the list of files does; what was open before is closed, saved or not, and the launcher that then
# comes up by itself.
_OPEN = """async name => {
    const {commands, shell} = window.jupyterapp;
    const close = () => [...shell.widgets("main")].filter(each => each !== opened).forEach(each => each.dispose());
    let opened = null;
    close();
    opened = await commands.execute("docmanager:open", {path: name, factory: "Notebook"});
    close();
    shell.expandLeft();
    await opened.context.ready;
    await opened.sessionContext.ready;
}"""

# The two seconds that anywidget 0.11 gives a widget's module to be loaded have gone before it can be.
_NO_PATIENCE = """() => {
    const timeout = AbortSignal.timeout.bind(AbortSignal);
    const at_once = {addEventListener: (_, hear) => queueMicrotask(hear)};
    AbortSignal.timeout = ms => ms === 2000 ? at_once : timeout(ms);
}"""


class Notebook:
    """A notebook open in the browser, alone.

    In the JupyterLab that the page shows already, where it does: to load that takes a core six seconds.
    """

    def __init__(self, page: Page, server: Server, name: str) -> None:
        self.page = page
        self.console = Console(page)
        if page.url.startswith(f"{server.url}/lab"):
            page.evaluate(_OPEN, name)
        else:
            page.goto(f"{server.url}/lab/tree/{name}?reset&token={server.token}")
        self.panel = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
        expect(self.panel).to_be_visible()
        self.wait_for_kernel()

    @property
    def complaints(self) -> list[str]:
        """Errors and warnings in the console that are not known ones of JupyterLab."""
        return self.console.complaints

    def cell(self, index: int) -> Locator:
        """A code cell, counted from 0; a negative one from the end."""
        return self.panel.locator(".jp-CodeCell").nth(index)

    def wait_for_kernel(self) -> None:
        """Until the kernel is idle."""
        expect(self.page.locator("#jp-main-statusbar")).to_contain_text("| Idle", timeout=CELL_SECONDS * 1000)

    def run(self, index: int, timeout: float = CELL_SECONDS) -> Locator:
        """Run one cell with the keyboard and wait until it has its number; returns its output area."""
        cell = self.cell(index)
        prompt = cell.locator(".jp-InputPrompt")
        before = prompt.inner_text()
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Control+Enter")
        if re.search(r"\d", before):
            # A cell that was run before keeps its number until the kernel takes it up.
            expect(prompt).not_to_have_text(before, timeout=timeout * 1000)
        expect(prompt).to_have_text(re.compile(r"\[\d+\]:"), timeout=timeout * 1000)
        return cell.locator(".jp-OutputArea").first

    def restart_kernel(self) -> None:
        """Kernel > Restart Kernel..., confirmed."""
        self.page.get_by_role("menuitem", name="Kernel", exact=True).click()
        self.page.locator(".lm-Menu-itemLabel", has_text="Restart Kernel…").first.click()
        self.page.get_by_role("button", name="Confirm Kernel Restart").click()
        self.wait_for_kernel()

    def save(self) -> None:
        """Ctrl+S, until the file is written."""
        self.page.keyboard.press("Control+s")
        expect(self.page.locator(".jp-mod-current .jp-DirtyIndicator, .lm-mod-current.jp-mod-dirty")).to_have_count(0)

    def hide_sidebar(self) -> None:
        """More room, as most people work."""
        self.page.evaluate("window.jupyterapp.shell.collapseLeft()")


@contextmanager
def chromium_page() -> Iterator[Page]:
    """A page of Debian's Chromium, or of any other on the PATH, for measurements outside of pytest."""
    with sync_playwright() as playwright:
        path = next(filter(None, map(shutil.which, CHROMIUM_NAMES)))
        browser = playwright.chromium.launch(executable_path=path, args=[*CHROMIUM_OPTIONS])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(1000 * CELL_SECONDS)
        try:
            yield page
        finally:
            browser.close()


def be_too_busy_for_anywidget(page: Page) -> None:
    """From now on anywidget gives up every widget, as where a page had no time to load one within two seconds."""
    page.evaluate(_NO_PATIENCE)


def choose_theme(page: Page, name: str) -> None:
    """Settings > Theme > ``name``."""
    page.get_by_role("menuitem", name="Settings", exact=True).click()
    page.locator(".lm-Menu-itemLabel", has_text=re.compile("^Theme$")).hover()
    page.locator(".lm-Menu-itemLabel", has_text=re.compile(f"^{re.escape(name)}$")).click()
    expect(page.locator("body")).to_have_attribute("data-jp-theme-name", name)


def write_notebook(path: Path, cells: list[str]) -> None:
    """A notebook of these code cells."""
    code = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    made: dict[str, Any] = {
        "cells": [{**code, "id": f"cell-{number}", "source": source} for number, source in enumerate(cells)],
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(made), encoding="utf-8")


def set_parameters(path: Path, **values: Any) -> None:
    """Give the cell tagged ``parameters`` other values, as papermill would."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cell = next(cell for cell in notebook["cells"] if "parameters" in cell["metadata"].get("tags", []))
    cell["source"] = "\n".join(f"{name} = {value!r}" for name, value in values.items())
    path.write_text(json.dumps(notebook), encoding="utf-8")


def code_cell(path: Path, part: str) -> int:
    """Index, among the code cells, of the first whose source holds ``part``."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return next(index for index, source in enumerate(sources) if part in source)
