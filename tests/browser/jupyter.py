"""What a user does in JupyterLab: open a notebook, run cells, restart the kernel; and what the console said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.sync_api import Locator, Page, expect

if TYPE_CHECKING:
    from conftest import Server

CELL_SECONDS = 60


class Notebook:
    """A notebook open in the browser."""

    def __init__(self, page: Page, server: Server, name: str) -> None:
        self.page = page
        self.console: list[str] = []
        page.on("console", lambda message: self._said(message.type, message.text))
        page.on("pageerror", lambda error: self.console.append(f"uncaught: {error}"))
        page.goto(f"{server.url}/lab/tree/{name}?reset&token={server.token}")
        self.panel = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
        expect(self.panel).to_be_visible()
        self.wait_for_kernel()

    def _said(self, kind: str, text: str) -> None:
        if kind == "error":
            self.console.append(text)

    @property
    def complaints(self) -> list[str]:
        """Errors in the console that are not JupyterLab's own (missing icons, closed sockets of a restart)."""
        foreign = ("Failed to load resource", "WebSocket", "favicon", "net::ERR", "Starting WebSocket")
        return [text for text in self.console if not any(part in text for part in foreign)]

    def cell(self, index: int) -> Locator:
        """A code cell, counted from 0; a negative one from the end."""
        return self.panel.locator(".jp-CodeCell").nth(index)

    def wait_for_kernel(self) -> None:
        """Until the kernel is idle."""
        expect(self.page.locator("#jp-main-statusbar")).to_contain_text("| Idle", timeout=CELL_SECONDS * 1000)

    def run(self, index: int, timeout: float = CELL_SECONDS) -> Locator:
        """Run one cell with the keyboard and wait until it has its number; returns its output area."""
        cell = self.cell(index)
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Control+Enter")
        prompt = cell.locator(".jp-InputPrompt")
        expect(prompt).not_to_have_text("[ ]:", timeout=timeout * 1000)
        expect(prompt).not_to_have_text("[*]:", timeout=timeout * 1000)
        return cell.locator(".jp-OutputArea").first

    def restart_kernel(self) -> None:
        """Kernel > Restart Kernel..., confirmed."""
        self.page.get_by_role("menuitem", name="Kernel", exact=True).click()
        self.page.locator(".lm-Menu-itemLabel", has_text="Restart Kernel…").first.click()
        self.page.get_by_role("button", name="Confirm Kernel Restart").click()
        self.wait_for_kernel()

    def hide_sidebar(self) -> None:
        """More room, as most people work."""
        self.page.keyboard.press("Control+b")


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
