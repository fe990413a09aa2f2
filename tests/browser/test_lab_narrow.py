"""The Lab in a small window: the links to its regions stay in sight, and Launch can be reached."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import RESULTS
from tests.browser.lab import open_lab
from tests.browser.looks import still
from tests.browser.servers import Server

pytestmark = pytest.mark.browser
SCREENS = {"half": (900, 700), "small": (700, 600)}


@pytest.mark.extended
def test_a_small_window_loses_neither_links_nor_launch(page: Page, server: Server, corpus: Path) -> None:
    open_lab(page, server, corpus)
    notebook, launch = page.locator(".jp-WindowedPanel-outer"), page.locator(".lab-launch")
    links = page.locator(".lab-links button")
    for name, (width, height) in SCREENS.items():
        page.set_viewport_size({"width": width, "height": height})
        page.locator(".lab-whole").evaluate("lab => lab.scrollIntoView()")
        within(notebook, launch)
        for link, region in (("Watch", "lab-watch"), ("Runs", "lab-below"), ("Compose", "lab-compose")):
            links.filter(has_text=link).click()
            expect(page.locator(f".{region}")).to_be_focused()
            within(notebook, *links.all(), page.locator(f".{region}"))
            # Nothing lies over them.
            links.filter(has_text=link).click(trial=True, timeout=1000)
        within(notebook, launch)
        page.screenshot(path=RESULTS / f"narrow-{name}.png")


def within(outer: Locator, *inner: Locator) -> None:
    """Whole in sight, once nothing moves any more."""
    room, *found = still(outer.page, lambda: [dict(one.bounding_box() or {}) for one in (outer, *inner)])
    for box in found:
        assert box["x"] >= room["x"]
        assert box["x"] + box["width"] <= room["x"] + room["width"]
        assert box["y"] >= room["y"] - 1
        assert box["y"] + box["height"] <= room["y"] + room["height"] + 1
