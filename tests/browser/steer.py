"""The panel that steers a run, as a user works it: by names, with the keyboard where it can be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.jupyter import Notebook, write_notebook
from tests.browser.servers import Server
from workbench.client.run import Run


class Steer:
    """The first run's panel, opened."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.root = page.locator(".wb-steer").first
        self.toggle = page.get_by_role("button", name=re.compile("^Steer: ")).first
        self.who = self.root.locator(".wb-who-steers")
        # In the order in which they stand: now, set, fork.
        self.now, self.knob, self.fork = (self.root.locator(".wb-line").nth(place) for place in range(3))
        self.knobs = self.knob.get_by_role("combobox")
        self.value = self.knob.get_by_role("textbox")
        self.edits = self.fork.get_by_role("textbox")
        if self.toggle.get_attribute("aria-expanded") != "true":
            self.toggle.focus()
            page.keyboard.press("Enter")
            expect(self.toggle).to_have_attribute("aria-expanded", "true")

    def said(self, line: Locator) -> Locator:
        """Say what became of the last request of a line."""
        return line.locator(".wb-line-said")

    def press(self, name: str) -> None:
        """A button of the panel, by the keyboard."""
        button = self.root.get_by_role("button", name=re.compile(f"^{name}"))
        expect(button).to_be_enabled()
        button.focus()
        self.page.keyboard.press("Enter")

    def choose(self, path: str) -> None:
        """A knob to set."""
        # Its options hold its present value as well.
        expect(self.knobs.locator(f'option[value="{path}"]')).to_be_attached()
        self.knobs.select_option(value=path)

    def set(self, path: str, value: str) -> None:
        """Type a value for a knob and apply it with Enter."""
        self.choose(path)
        self.value.fill(value)
        self.value.press("Enter")


def place(page: Page) -> str:
    """Return where the first run stands, as the view shows it."""
    return page.locator(".wb-place").first.inner_text()


def moves(page: Page) -> None:
    """The view shows another step."""
    expect(page.locator(".wb-place").first).not_to_have_text(place(page))


def stop(page: Page) -> None:
    """As a user does."""
    page.get_by_role("button", name=re.compile("^Stop: ")).first.click()
    page.get_by_role("button", name="Stop this run").click()


def open_view(page: Page, server: Server, run: Run, name: str, then: str = "") -> Notebook:
    """A notebook with the live view of the run and a cell to be run next."""
    watch = f"import workbench as wb\nview = wb.Run({run.id!r}, {str(run.folder.path.parent)!r}).watch()"
    write_notebook(server.root / name, [watch, then])
    notebook = Notebook(page, server, name)
    notebook.hide_sidebar()
    notebook.run(0)
    expect(page.locator(".wb-pill").first).to_have_text("running")
    moves(page)
    return notebook


def begin(notebook: Notebook, index: int) -> None:
    """Start a cell and do not wait for it."""
    notebook.cell(index).locator(".cm-content").click()
    notebook.page.keyboard.press("Control+Enter")


def long_run(corpus: Path, folder: Path) -> Run:
    """A run that would go on for hours, training, in a folder that only its kernel knows of."""
    from tests.tiny_runs import tiny_recipe, wait_until, yield_to_others
    from workbench.client.launch import launch

    live = launch(tiny_recipe(corpus, steps=1_000_000), runs_dir=folder)
    wait_until(lambda: live.status == "running" and live.state.step > 0)
    yield_to_others(live)
    return live


@contextmanager
def trained_meanwhile(corpus: Path, folder: Path) -> Iterator[Run]:
    """A :func:`long_run` on one thread, for as long as the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        live = long_run(corpus, folder)
        yield live
        end(live)


def end(run: Run) -> None:
    """Stop a run and all its forks, whoever steers them."""
    from tests.tiny_runs import wait_until
    from workbench.store.folder import RunFolder
    from workbench.store.state import FINAL

    beside = [Run(RunFolder(path)) for path in run.folder.path.parent.iterdir() if (path / "launched.json").exists()]
    for live in beside:
        if live.status not in FINAL:
            live.ask("stop", take_over=True)
    for live in beside:
        wait_until(lambda live=live: live.status in FINAL)
