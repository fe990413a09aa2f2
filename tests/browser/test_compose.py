"""Composing in a real page: undo by key, text pasted back, theirs taken, cards beside the form, help without mouse."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import violations
from tests.browser.conftest import RESULTS
from tests.browser.jupyter import Notebook, write_notebook
from tests.browser.lab import open_axes
from tests.browser.servers import Server
from tests.jupyter.live import run_folder
from workbench import presets

pytestmark = pytest.mark.browser
COMPOSER = """
import pathlib, time
from workbench.jupyter.compose.composer import Composer
composer = Composer()
begin = composer.composition.begin

def begin_late(*arguments):
    while pathlib.Path("busy").exists():
        time.sleep(0.05)
    begin(*arguments)

composer.composition.begin = begin_late
composer
""".strip()
"""A composer that takes up no other preset while there is a file ``busy``, as a kernel that has much to do."""


def test_composing(page: Page, server: Server) -> None:
    """One kernel for all of it: each part begins with a preset."""
    mine = presets.get("fast").with_(seed=5).to_dict()
    run_folder(server.runs / "20260131-081500-mine-0a1b2c-3d4e", "finished", alive=False, **mine)
    write_notebook(server.root / "compose.ipynb", [COMPOSER])
    notebook = Notebook(page, server, "compose.ipynb")
    notebook.hide_sidebar()
    notebook.run(0)
    composer = page.locator(".lab-composer")
    expect(verdict(composer)).to_contain_text("ready")
    open_axes(page)
    for part in (undo_by_key_and_help, card_beside_the_form, search_and_errors, texts, differences):
        part(composer, page)
        if composer.locator(".lab-all").count():
            composer.get_by_role("button", name="reset all").click()
        expect(verdict(composer)).to_contain_text(re.compile("as .* has it"))
    typed_before_a_late_answer(composer, server.root / "busy")


def verdict(root: Locator) -> Locator:
    """The line that says where the recipe stands."""
    return root.locator(".lab-verdict")


def undo_by_key_and_help(composer: Locator, page: Page) -> None:
    """A text has its own undo while it is typed; the rest is the recipe's. Help is heard and seen."""
    rate = composer.get_by_label("lr", exact=True)
    rate.focus()
    expect(composer.locator(".lab-hint")).to_contain_text("optimizer.lr · > 0 and ≤ 100")
    expect(rate).to_have_accessible_description(re.compile("^peak learning rate optimizer.lr · "))
    rate.fill("0.004")
    page.keyboard.press("Control+z")
    expect(rate).to_have_value("0.0015")  # the text's own undo, while it is typed
    rate.fill("0.004")
    rate.press("Enter")
    expect(verdict(composer)).to_contain_text("1 knob changed")
    page.keyboard.press("Control+z")
    expect(verdict(composer)).to_contain_text("undo: optimizer.lr 0.004 → 0.0015")
    expect(rate).to_have_value("0.0015")
    page.keyboard.press("Control+Shift+z")
    expect(rate).to_have_value("0.004")
    undo = composer.get_by_role("button", name="undo optimizer.lr 0.0015 → 0.004 (Ctrl+Z)")
    expect(undo).to_have_attribute("aria-disabled", "false")
    composer.get_by_role("button", name="optimizer.lr: back to 0.0015").click()
    expect(rate).to_have_value("0.0015")
    expect(rate).to_be_focused()
    # The knob that has the focus goes away with the choice it belongs to; the keys still reach the recipe.
    optimizer = composer.get_by_label("choice of optimizer")
    optimizer.select_option("lans")
    expect(composer.get_by_label("eps", exact=True)).to_have_value("1e-06")
    decay = composer.get_by_label("beta1", exact=True)
    decay.fill("0.8")
    decay.press("Enter")
    expect(verdict(composer)).to_contain_text("2 knobs changed")
    page.keyboard.press("Control+z")
    expect(verdict(composer)).to_contain_text("undo: optimizer.beta1")
    page.keyboard.press("Control+z")
    expect(optimizer).to_have_value("adamw")
    expect(composer.locator(".lab-tool").first).to_be_focused()
    page.keyboard.press("Control+y")
    expect(optimizer).to_have_value("lans")
    expect(composer.locator(".lab-all")).to_be_visible()


def card_beside_the_form(composer: Locator, page: Page) -> None:
    """It takes the focus, gives it back, and falls below the form where there is no room beside."""
    button = composer.get_by_role("button", name="about Optimizer")
    button.focus()
    page.keyboard.press("Enter")
    panel = composer.get_by_role("region", name="optimizer: adamw")
    card = panel.locator(".lab-card")
    expect(card).to_be_focused()
    page.wait_for_function(
        "() => { const [a, b] = ['.lab-sections', '.lab-card-panel'].map(q => document.querySelector(q)"
        ".getBoundingClientRect()); return b.left >= a.right - 1; }"
    )
    assert violations(page, "card") == []
    page.set_viewport_size({"width": 560, "height": 800})
    expect(panel).to_be_visible()
    page.wait_for_function(
        "() => { const [a, b] = ['.lab-sections', '.lab-card-panel'].map(q => document.querySelector(q)"
        ".getBoundingClientRect()); return b.top >= a.bottom - 1 && a.height > 80 && b.height > 100; }"
    )
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(button).to_be_focused()
    page.set_viewport_size({"width": 1280, "height": 800})


def texts(composer: Locator, page: Page) -> None:
    """Python is shown to be copied; JSON is edited and pasted, and nothing typed is lost."""
    composer.get_by_role("button", name="Python").click()
    area = composer.get_by_label("the recipe as Python")
    expect(area).to_have_value("import workbench as wb\n\nrecipe = wb.presets.fast()\nrun = wb.launch(recipe)\n")
    expect(area).not_to_be_editable()
    composer.get_by_role("button", name="JSON").click()
    area = composer.get_by_label("the recipe as JSON")
    expect(area).to_have_value(presets.get("fast").to_json() + "\n")
    right = presets.get("fast").with_(optimizer={"lr": 0.002}, seed=4).to_json() + "\n"
    wrong = right.replace('"seed": 4', '"seed": -4')
    line = wrong[: wrong.index('"seed"')].count("\n") + 1
    area.fill(wrong)
    problems = composer.locator(".lab-problems")
    expect(problems).to_contain_text(f"line {line} seed: ")
    page.keyboard.press("Control+Enter")
    expect(area).to_have_value(wrong)
    expect(verdict(composer)).to_contain_text(f"cannot run the JSON as edited: line {line}")
    assert violations(page, "text with an error") == []
    composer.get_by_role("button", name="Form").click()
    composer.get_by_role("button", name="JSON").click()
    expect(area).to_have_value(wrong)
    area.fill(right)
    expect(composer.locator(".lab-editor .lab-note")).to_contain_text("Apply: 2 knobs")
    page.keyboard.press("Control+Enter")
    expect(verdict(composer)).to_contain_text("2 knobs changed")
    expect(area).to_have_value(right)
    page.screenshot(path=RESULTS / "compose-json.png")


def differences(composer: Locator, page: Page) -> None:
    """From a run, taken with the keyboard alone."""
    composer.get_by_label("preset", exact=True).select_option("fast")
    composer.get_by_role("button", name="Difference").click()
    against = composer.get_by_label("against", exact=True)
    expect(composer.locator(".lab-difference")).to_contain_text("Nothing differs from preset fast")
    against.focus()
    against.select_option(label="mine · 2026-01-31 08:15:00 UTC")
    take = composer.get_by_role("button", name="take theirs: seed 5")
    take.focus()
    page.keyboard.press("Enter")
    expect(composer.locator(".lab-difference")).to_contain_text("Nothing differs from run mine")
    expect(verdict(composer)).to_contain_text("1 knob changed")
    against.select_option("pld")
    expect(composer.locator(".lab-difference tbody tr:not(.lab-inside)")).to_have_count(8)
    assert violations(page, "differences") == []
    # The table begins right below what is compared with, and has the room.
    picker, table = (composer.locator(f".lab-compare {part}").bounding_box() for part in ("select", ".lab-difference"))
    assert picker is not None
    assert table is not None
    assert 0 <= table["y"] - picker["y"] - picker["height"] <= 12
    page.screenshot(path=RESULTS / "compose-difference.png")


def search_and_errors(composer: Locator, page: Page) -> None:
    """What is found is shown, and there is a way to what is wrong although it is not."""
    search = composer.get_by_label("find a knob by its name or help (/)")
    search.fill("vocabulary size")
    expect(composer.locator(".lab-found")).to_contain_text("5 knobs found")
    expect(composer.get_by_role("textbox", name="vocabulary size")).to_be_visible()
    expect(composer.get_by_label("lr", exact=True)).to_have_count(0)
    composer.get_by_role("textbox", name="vocabulary size").fill("none")
    composer.get_by_role("textbox", name="vocabulary size").press("Tab")
    expect(verdict(composer)).to_contain_text("cannot run")
    search.fill("seed")
    expect(composer.get_by_role("textbox", name="vocabulary size")).to_have_count(0)
    composer.get_by_role("button", name="show").click()
    expect(composer.get_by_role("textbox", name="vocabulary size")).to_be_focused()
    expect(composer.get_by_role("textbox", name="vocabulary size")).to_have_attribute("aria-invalid", "true")
    expect(search).to_have_value("")
    assert violations(page, "an error") == []


def typed_before_a_late_answer(composer: Locator, busy: Path) -> None:
    """What is typed before the kernel answers an earlier request is kept and sent; what is not typed follows it."""
    rate, warmup = (composer.get_by_label(name, exact=True) for name in ("lr", "warmup"))
    composer.get_by_role("button", name="Form").click()
    for preset, texts, left in (("bert_tiny", ["0.004"], "0.004"), ("fast", ["0.005", "0.004"], "0.0015")):
        busy.touch()
        composer.get_by_label("preset", exact=True).select_option(preset)
        for text in texts:
            rate.fill(text)
        busy.unlink()
        expect(warmup).to_have_value(f"{presets.get(preset).optimizer.schedule.warmup:g}")
        expect(rate).to_have_value(texts[-1])
        rate.press("Tab")
        expect(rate).to_have_value(left)
        expect(verdict(composer)).to_contain_text("1 knob changed" if left == "0.004" else re.compile("as .* has it"))
