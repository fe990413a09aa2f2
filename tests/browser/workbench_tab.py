"""JupyterLab with the Workbench's own place in it, for tests that look at it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.servers import Server, jupyterlab
from tests.browser.steer import trained_meanwhile
from tests.tiny_runs import wait_until
from workbench.client.run import Run


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, chromium: str, kernel_template: str) -> Iterator[Server]:
    """A JupyterLab of its own, whose kernels keep runs in the server's own runs folder, as `make lab` starts it."""
    home = tmp_path_factory.mktemp("labextension")
    with jupyterlab(home, home / "notebooks" / "runs", template=kernel_template) as found:
        yield dataclasses.replace(found, runs=found.root / "runs")


@pytest.fixture(scope="module")
def run(server: Server, corpus: Path) -> Iterator[Run]:
    """A run that goes on for long; no kernel knows of it."""
    with trained_meanwhile(corpus, server.runs) as live:
        yield live


# As a page is at first: files on the left, and in the middle what comes when all is closed.
_EMPTY = """() => {
    const {shell} = window.jupyterapp;
    [...shell.widgets("main")].forEach(each => each.dispose());
    shell.activateById("filebrowser");
}"""


def jupyter(page: Page, server: Server) -> None:
    """JupyterLab with nothing but its launcher: the one that the page shows already, where it does."""
    if page.url.startswith(f"{server.url}/lab"):
        page.evaluate(_EMPTY)
    else:
        page.goto(f"{server.url}/lab?reset&token={server.token}")
    expect(page.locator(".jp-Launcher")).to_be_visible()
    expect(page.locator(".jp-Launcher")).to_have_count(1)


def lab_of(page: Page) -> Locator:
    """The Lab's tab, all of it there: to take a view away that JupyterLab still loads is an error in its console."""
    lab = page.locator(".wb-dock-lab:visible")
    expect(lab.locator(".wb-dock-cover")).to_be_hidden()
    # The Lab of a kernel that has ended stands there until the next one comes.
    expect(lab.locator(".lab-ended")).to_have_count(0)
    expect(lab.locator(".lab-composer")).to_be_visible()
    expect(lab.locator(".lab-runs .lab-actions").first).to_be_visible()
    expect(lab.locator(".lab-border")).to_have_count(2)
    expect(page.locator("#jp-main-statusbar")).to_contain_text("| Idle")
    return lab


def rate(lab: Locator) -> Locator:
    """The box of the learning rate, of a Lab whose axis of optimizers is open (:func:`open_axes`)."""
    knob = lab.locator(".lab-knob", has=lab.page.locator("label", has_text=re.compile(r"^\s*lr(\s|$)"))).last
    return knob.locator("input[type=text]").first


def session(server: Server) -> dict[str, Any]:
    """The one session of the Lab."""
    (found,) = server.ask("api/sessions")
    return found


def remembered(server: Server, text: str) -> None:
    """Until JupyterLab has saved its layout, which it does a moment after each change."""
    wait_until(lambda: text in str(server.ask("lab/api/workspaces/default")), what=f"{text} in the saved layout")


def nothing_lies_over_the_curves(lab: Locator) -> None:
    """Expect free curves in a Lab without a kernel; its forms and its table are inert."""
    expect(lab.locator(".wb-dock-cover")).to_be_hidden()
    for inert in (".lab-composer", ".lab-runs"):
        assert lab.locator(inert).first.evaluate("one => Boolean(one.closest('[inert]'))")
    plot = lab.locator(".lab-watch .u-over").first
    plot.hover()  # fails where something lies over it
    assert plot.evaluate("one => !one.closest('[inert]')")
