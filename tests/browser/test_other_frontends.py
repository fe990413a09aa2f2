"""The Lab outside of JupyterLab: Notebook 7 and Voila draw it, and it works there."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import RESULTS
from tests.browser.lab import open_axes, stop_selected, write_lab
from tests.browser.looks import expect_curve
from tests.browser.servers import Server
from tests.tiny_runs import yield_to_others
from workbench.client.run_list import runs

pytestmark = [pytest.mark.browser, pytest.mark.extended]


def compose_launch_and_stop(page: Page, server: Server, name: str) -> None:
    """A knob is changed, a run launched, watched and stopped."""
    composer = page.locator(".lab-composer")
    expect(composer).to_be_visible(timeout=60_000)
    # There are no tabs.
    expect(composer.get_by_role("button", name="Open this Lab in a tab")).to_have_count(0)
    composer.get_by_label("preset", exact=True).select_option("pocket")
    expect(composer).to_contain_text("Two thin layers on a small text")
    open_axes(page, "Optimizer")
    rate = composer.locator(".lab-knob", has=page.locator("label", has_text=re.compile(r"^\s*lr(\s|$)"))).last
    rate.locator("input[type=text]").first.fill("0.004")
    rate.locator("input[type=text]").first.press("Tab")
    expect(composer.locator(".lab-verdict")).to_contain_text("1 knob changed")
    page.get_by_role("button", name="Launch").click()
    status = page.locator(".lab-runs tbody tr").first.locator(".lab-status")
    expect(status).to_have_text("running")
    run = runs(server.runs)[0]
    yield_to_others(run)
    assert run.recipe.optimizer.lr == 0.004
    monitor = page.locator(".lab-watch .wb-monitor")
    expect(monitor.locator(".wb-place").first).to_contain_text(re.compile(r"[1-9][\d,]* /"))
    expect_curve(monitor)
    page.screenshot(path=RESULTS / f"{name}.png")
    stop_selected(page)
    expect(status).to_have_text("stopped")
    assert run.status == "stopped"


def run_first_cell(page: Page) -> None:
    """With the keyboard, again where it came too early: the page looks ready before its kernel can be asked."""
    cell, accept = page.locator(".jp-CodeCell").first, page.locator(".jp-Dialog button.jp-mod-accept").first
    # Without a kernel yet, Notebook asks which one it shall be.
    page.add_locator_handler(accept, lambda button: button.click())
    for _ in range(5):
        cell.locator(".cm-content").click()
        page.keyboard.press("Control+Enter")
        with contextlib.suppress(AssertionError):
            expect(cell.locator(".jp-InputPrompt")).not_to_have_text("[ ]:", timeout=5000)
            page.remove_locator_handler(accept)
            return
    raise AssertionError("the first cell was never run")


def test_notebook_7(page: Page, server: Server, corpus: Path) -> None:
    pytest.importorskip("notebook")
    write_lab(server, corpus, "seven.ipynb")
    page.goto(f"{server.url}/notebooks/seven.ipynb?token={server.token}")
    expect(page.locator(".jp-Notebook-ExecutionIndicator")).to_have_attribute("data-status", "idle")
    run_first_cell(page)
    compose_launch_and_stop(page, server, "notebook-7")


def test_voila(page: Page, server: Server, corpus: Path) -> None:
    pytest.importorskip("voila")
    write_lab(server, corpus, "app.ipynb")
    page.goto(f"{server.url}/voila/render/app.ipynb?token={server.token}")
    compose_launch_and_stop(page, server, "voila")
