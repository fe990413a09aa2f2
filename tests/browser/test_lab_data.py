"""The Data tab of the Lab: rows of a step, a sentence traced to its step, and why a document was left out."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import RESULTS
from tests.browser.jupyter import Notebook, choose_theme
from tests.browser.lab import assert_fit_in_both_themes, write_lab
from tests.browser.servers import Server
from tests.corpus import CYCLE
from tests.seen.test_rows import written
from tests.tiny_runs import tiny_recipe
from workbench.client.launch import launch

pytestmark = pytest.mark.browser

SENTENCE = "the old lighthouse keeper lit his lamp"


@pytest.mark.extended
def test_a_sentence_is_found_at_its_step_while_the_kernel_is_busy(page: Page, server: Server) -> None:
    texts = [" ".join(CYCLE[(n + k) % 20] for k in range(1, 60)) + f" number {n}" for n in range(300)]
    texts[7] = f"{' '.join(CYCLE)} {SENTENCE} {' '.join(CYCLE[::-1])}"
    texts.insert(50, texts[7])
    corpus = written(server.root / "texts.jsonl", texts)
    recipe = tiny_recipe(corpus, steps=120, name="rows").with_(data={"steps": [{"kind": "exact_duplicates"}]})
    launch(recipe, on="inline", runs_dir=server.runs).wait()
    other = written(server.root / "other.jsonl", [f"{' '.join(CYCLE)} {n}" for n in range(90)])
    pocket = tiny_recipe(other, steps=120, name="pocket")
    write_lab(server, other, "data.ipynb", pocket, ["import time; time.sleep(600)"])
    notebook = Notebook(page, server, "data.ipynb")
    notebook.hide_sidebar()
    notebook.run(0)
    page.locator(".lab-whole").evaluate("lab => lab.scrollIntoView()")
    # Before there is a run to watch: the rows of what is composed, once its text is prepared.
    tabs = page.get_by_role("tablist", name="curves or questions")
    panel = page.get_by_role("tabpanel", name="Data", exact=True)
    page.get_by_label("preset", exact=True).select_option("pocket")
    tabs.get_by_role("tab", name="Data").click()
    expect(tabs.get_by_role("tab", name="Try")).to_be_hidden()
    expect(panel).to_contain_text("the text of this recipe is not prepared yet")
    panel.get_by_role("button", name="Prepare the text").click()
    expect(panel).to_contain_text("the recipe as composed would read")
    expect(panel.get_by_role("region", name=re.compile(r"^row \d+$"))).to_have_count(4)
    page.screenshot(path=RESULTS / "lab-data-composed.png")
    tabs.get_by_role("tab", name="Watch").click()
    page.locator(".lab-runs .lab-line", has_text="rows").locator(".lab-mark").click()
    expect(page.locator(".lab-watch .wb-monitor .wb-run", has_text="rows")).to_be_visible()
    # Not waited for: the kernel is busy from here on.
    notebook.cell(1).locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    page.locator(".lab-whole").evaluate("lab => lab.scrollIntoView()")
    tabs.get_by_role("tab", name="Data").click()
    panel.get_by_label("run or recipe").select_option(label="rows")
    # The newest step, once the process beside the server has opened the text.
    expect(panel).to_contain_text("has read 8 rows of 32 tokens at step 119", timeout=60_000)
    expect(panel.get_by_role("region", name=re.compile(r"^row \d+$"))).to_have_count(4)
    panel.get_by_role("button", name="previous step").click()
    expect(panel.get_by_label("step", exact=True)).to_have_value("118")
    panel.get_by_label("step", exact=True).fill("3")
    panel.get_by_label("step", exact=True).press("Enter")
    expect(panel).to_contain_text("at step 3, after 768 tokens")
    expect(panel.locator(".lab-data-masked sup").first).to_have_text("?")
    panel.get_by_role("button", name="later rows of this step").click()
    expect(panel.get_by_role("region", name="row 4")).to_be_visible()

    panel.get_by_label("words to find").fill(SENTENCE)
    panel.get_by_label("words to find").press("Enter")
    expect(panel).to_contain_text("found in 1 place")
    expect(panel).to_contain_text("left out by step 'exact_duplicates' of the preparation")
    expect(panel).to_contain_text("document 50 of the corpus (texts.jsonl)")
    panel.get_by_role("button", name="Show at step").click()
    expect(panel.locator(".lab-data-row").first).to_contain_text("keeper")
    expect(panel.locator(".lab-data-row").first).to_contain_text("(texts.jsonl)")
    panel.get_by_text("Removed in preparation, and why").click()
    expect(panel.get_by_role("table", name="preparation steps")).to_contain_text("exact_duplicates")
    panel.get_by_text("Tokenizer", exact=True).click()
    expect(panel.get_by_role("table", name="tokenizer on this text")).to_contain_text("tokens per word")
    expect(panel.get_by_role("table", name="most frequent tokens").get_by_role("row")).not_to_have_count(0)

    assert_fit_in_both_themes(page, "data", "lab-data", ".lab-try")
    choose_theme(page, "JupyterLab Light")
    page.set_viewport_size({"width": 900, "height": 900})
    assert panel.evaluate("panel => panel.scrollWidth <= panel.clientWidth")
    page.screenshot(path=RESULTS / "lab-data-900.png")
    tabs.get_by_role("tab", name="Watch").click()
    expect(panel).to_be_hidden()
    assert notebook.complaints == []
