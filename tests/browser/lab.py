"""A Lab to look at: a preset that trains at once on two thin layers, and a run of many layers that goes on for long."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import violations
from tests.browser.conftest import RESULTS
from tests.browser.jupyter import Notebook, choose_theme, write_notebook
from tests.browser.looks import still, unfit
from tests.browser.servers import Server
from tests.tiny_runs import tiny_recipe
from workbench.recipes.recipe import Recipe

# A preset like any other, but first in the list: the module lists its own functions by their line.
_PRESET = '''
import workbench as wb
from workbench import presets
exec("""
def pocket():
    \\"\\"\\"Two thin layers on a small text: trains at once.\\"\\"\\"
    import pathlib
    return Recipe.from_json(pathlib.Path("pocket.json").read_text(encoding="utf-8"))
""", vars(presets))
'''.strip()


def long_recipe(corpus: Path, name: str = "a run") -> Recipe:
    """Four thin layers, some of them dropped, for longer than any test."""
    return tiny_recipe(corpus, steps=1_000_000, name=name).with_(
        architecture={"layers": 4},
        depth={"kind": "progressive_drop", "theta": 0.5, "gamma": 1e-3},
        execution={"layers_every": 5},
    )


def write_lab(
    server: Server, corpus: Path, name: str = "lab.ipynb", pocket: Recipe | None = None, more: Sequence[str] = ()
) -> None:
    """A notebook whose first cell shows the Lab, with the preset ``pocket``; ``more``: cells after it."""
    pocket = pocket or tiny_recipe(corpus, steps=1_000_000, name="pocket")
    (server.root / "pocket.json").write_text(pocket.to_json())
    write_notebook(server.root / name, [f"{_PRESET}\nwb.Lab()", *more])


def open_lab(
    page: Page, server: Server, corpus: Path, name: str = "lab.ipynb", pocket: Recipe | None = None
) -> Notebook:
    """The same, open in JupyterLab, the cell run."""
    write_lab(server, corpus, name, pocket)
    notebook = Notebook(page, server, name)
    notebook.hide_sidebar()
    notebook.run(0)
    expect(page.locator(".lab-composer")).to_be_visible()
    open_axes(page)
    return notebook


def open_axes(page: Page, *names: str) -> None:
    """Open axes of the composer, which are all closed at first; the two that are changed most by default."""
    for name in names or ("Architecture", "Optimizer"):
        toggle = page.locator(".lab-composer .lab-toggle", has_text=name)
        still(page, lambda: page.locator(".lab-composer").inner_text())
        # One that was open before its kernel ended is open again, and may be so after it was pressed.
        for patience in (10_000, 10_000, None):
            if toggle.get_attribute("aria-expanded") != "true":
                toggle.press("Enter")
            with suppress(AssertionError) if patience else nullcontext():
                expect(toggle).to_have_attribute("aria-expanded", "true", timeout=patience)
                break


def knob(page: Page, label: str) -> Locator:
    """The box of a knob."""
    name = page.locator("label", has_text=re.compile(rf"^\s*{label}"))
    return page.locator(".lab-composer .lab-knob").filter(has=name).last.locator("input").first


def stop_selected(page: Page) -> None:
    """Stop the runs that are selected in the table, which asks first."""
    page.locator(".lab-actions").get_by_role("button", name="Stop").click()
    question, rows = page.locator(".lab-runs .wb-question"), page.locator(".lab-runs .lab-scroll")
    expect(question).to_be_visible()
    asked, about = question.bounding_box(), rows.bounding_box()
    assert asked is not None
    assert about is not None
    assert asked["y"] + asked["height"] <= about["y"] + 1, "the rows that it is about stay in sight"
    question.get_by_role("button", name="Stop").click()


def watch_first(page: Page) -> Locator:
    """Draw the curves of the newest run of the table; returns the live view."""
    page.locator(".lab-runs .lab-line .lab-mark").first.click()
    monitor = page.locator(".lab-watch .wb-monitor")
    expect(monitor).to_be_visible()
    expect(monitor.locator(".wb-place").first).to_contain_text(re.compile(r"[1-9][\d,]* /"))
    return monitor


def assert_fit_in_both_themes(page: Page, state: str, picture: str, root: str) -> None:
    """Take a picture of the Lab in each theme, in which axe finds nothing and nothing sticks out; the dark one stays.

    Args:
        state: for messages. picture: name of the files. root: the part that axe looks at.
    """
    page.screenshot(path=RESULTS / f"{picture}.png")
    assert violations(page, state, roots=(root,)) == []
    assert unfit(page) == []
    choose_theme(page, "JupyterLab Dark")
    page.locator(".lab-whole").evaluate("lab => lab.scrollIntoView()")
    page.screenshot(path=RESULTS / f"{picture}-dark.png")
    assert violations(page, f"{state}, dark", roots=(root,)) == []
