"""Try it in the Lab: a sentence for two runs, their checkpoints, a continuation, and a pinned sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import RESULTS
from tests.browser.jupyter import Notebook, choose_theme, write_notebook
from tests.browser.lab import assert_fit_in_both_themes
from tests.browser.servers import Server
from tests.tiny_runs import tiny_recipe
from workbench.client.launch import launch

pytestmark = pytest.mark.browser


@pytest.mark.extended
def test_a_sentence_is_asked_pinned_and_seen(page: Page, server: Server, corpus: Path) -> None:
    for objective in ("causal", "masked"):
        recipe = tiny_recipe(corpus, steps=60, name=f"try {objective}")
        # Fast enough that there are two checkpoints to choose from.
        recipe = recipe.with_(objective=objective, budget={"checkpoint_seconds": 1e-6})
        launch(recipe, on="inline", runs_dir=server.runs).wait()
    write_notebook(server.root / "try.ipynb", ["import workbench as wb\nwb.Lab()"])
    notebook = Notebook(page, server, "try.ipynb")
    notebook.hide_sidebar()
    notebook.run(0)
    page.locator(".lab-whole").evaluate("lab => lab.scrollIntoView()")
    tabs, monitor = page.get_by_role("tablist", name="curves or questions"), page.locator(".lab-watch .wb-monitor")
    expect(tabs.get_by_role("tab", name="Try")).to_be_hidden()
    for name in ("try masked", "try causal"):
        page.locator(".lab-runs .lab-line", has_text=name).locator(".lab-mark").click()
        expect(monitor.locator(".wb-run", has_text=name)).to_be_visible()

    # By keyboard alone.
    tabs.get_by_role("tab", name="Watch").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(monitor).to_be_hidden()
    panel = page.get_by_role("tabpanel", name="Try", exact=True)
    field, said = panel.get_by_label("sentence", exact=True), panel.locator(".lab-try-said")
    field.press("Enter")
    expect(said).to_contain_text("write a sentence first")
    field.fill("the [MASK] of the house")
    field.press("Enter")
    words = panel.get_by_role("table", name="likeliest words")
    expect(words.get_by_role("row")).to_have_count(5)
    expect(words.get_by_role("row").first).to_contain_text(re.compile(r"\d\.\d%"))
    expect(said).to_contain_text("reads a text from the left alone")
    masked, causal = panel.locator(".lab-try-answer").first, panel.locator(".lab-try-answer").nth(1)
    expect(masked).to_contain_text("at step 60")
    # Another checkpoint answers at once.
    panel.get_by_label("checkpoint of the run to ask").press("Home")
    expect(masked).to_contain_text("at step 59")

    panel.get_by_role("button", name="Pin", exact=True).click()
    pinned = panel.get_by_role("region", name="pinned: the [MASK] of the house")
    rows = pinned.locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.last).to_contain_text(re.compile(r"^60\S+%$"))
    expect(rows.last.locator(".lab-try-bar span")).to_have_attribute("style", re.compile(r"width: \d"))
    field.fill("the house")
    expect(panel.get_by_label("temperature", exact=True)).to_have_value("0.8")
    panel.get_by_label("tokens", exact=True).fill("6")
    field.press("Enter")
    expect(causal).to_contain_text(re.compile("at step 60the house."))
    expect(said).to_contain_text("continues no text")
    panel.get_by_role("button", name="Pin", exact=True).click()
    expect(panel.get_by_role("region", name="pinned: the house").locator("tbody tr")).to_have_count(2)
    assert_fit_in_both_themes(page, "try", "lab-try", ".lab-try")
    choose_theme(page, "JupyterLab Light")

    panel.get_by_role("button", name="unpin: the house").click()
    expect(panel.get_by_role("region", name="pinned: the house")).to_have_count(0)
    tabs.get_by_role("tab", name="Watch").click()
    expect(monitor).to_be_visible()
    expect(panel).to_be_hidden()
    page.screenshot(path=RESULTS / "lab-try-watch.png")
    assert notebook.complaints == []
