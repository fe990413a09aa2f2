"""A lesson in a real JupyterLab: committed to from the keyboard, there after a restart and after the page is loaded."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import RESULTS, Server
from tests.browser.jupyter import Notebook, write_notebook

pytestmark = pytest.mark.browser
CELLS = [
    "import workbench as wb\nlesson = wb.Lesson('did_it_learn', learner='ada')",
    "lesson.predict('which', 'Which has learned?', options=['slow', 'random words', 'usual'])\n"
    "lesson.predict('loss', 'Its loss at the end?', unit='nats', low=2, high=12)",
    "lesson.committed('which')",
    "lesson.outcome('which', 'usual', 'It lies below its floor.')",
    "lesson.check('q', 'Which floor?', options=['none', 'its own'], "
    "answer='its own', hints=['Look at the grey line.'])",
    "lesson.summary()",
]


def answer(question: Locator, page: Page, option: str) -> None:
    """Choose with the keyboard alone, and press the button after it."""
    question.get_by_label(option, exact=True).focus()
    page.keyboard.press("Space")
    question.locator("button").focus()
    page.keyboard.press("Enter")


def test_a_lesson_is_answered_from_the_keyboard(page: Page, server: Server) -> None:
    write_notebook(server.root / "lesson.ipynb", CELLS)
    notebook = Notebook(page, server, "lesson.ipynb")
    notebook.hide_sidebar()
    notebook.run(0)
    notebook.run(1)
    expect(notebook.run(2)).to_contain_text("commit to a prediction first")
    which, loss = (notebook.cell(1).locator(".lab-lesson").nth(place) for place in (0, 1))
    page.screenshot(path=RESULTS / "lesson-asked.png")
    which.locator("button").click()
    expect(which).to_contain_text("Choose one first.")
    answer(which, page, "random words")
    output = notebook.cell(1)
    expect(output).to_contain_text(re.compile("your prediction: random words, committed at"))
    loss = notebook.cell(1).locator(".lab-lesson")
    # A letter that JupyterLab has a shortcut for: no cell is inserted.
    loss.locator("input").focus()
    page.keyboard.type("b")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(loss).to_contain_text("'b' is no number; give a number from 2 to 12 nats")
    expect(notebook.panel.locator(".jp-CodeCell")).to_have_count(len(CELLS))
    notebook.restart_kernel()
    notebook.run(0)
    expect(notebook.run(1)).to_contain_text("your prediction: random words")
    # That cell has the number it had before: the next one, which had none, tells that the prediction is known.
    expect(notebook.run(3)).to_contain_text("not this time")
    question = notebook.run(4).locator(".lab-lesson")
    answer(question, page, "none")
    expect(question).to_contain_text("Not “none”. Look at the grey line.")
    page.screenshot(path=RESULTS / "lesson-hint.png")
    answer(question, page, "its own")
    expect(notebook.cell(4)).to_contain_text("its own: right, second answer")
    expect(notebook.run(5).locator("td", has_text="Which floor?")).to_be_visible()
    page.screenshot(path=RESULTS / "lesson-answered.png")
    notebook.save()
    page.reload()
    expect(page.locator(".jp-NotebookPanel")).to_contain_text("your prediction: random words, committed at")
    assert notebook.complaints == []
