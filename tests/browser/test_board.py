"""The board in JupyterLab: everybody's runs by owner, live, and an entry of a leaderboard by one click."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.jupyter import Notebook, write_notebook
from tests.browser.lab import assert_fit_in_both_themes
from tests.browser.servers import Server
from tests.tiny_runs import tiny_recipe
from workbench.client.launch import launch
from workbench.lessons.record import Prediction, Record, path_of
from workbench.workshop.task import Entry, keep, new_task

pytestmark = pytest.mark.browser


def test_a_room_is_seen_and_an_entry_is_opened_and_launched(
    page: Page, server: Server, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tiny_recipe(corpus, steps=8).with_(objective="causal")
    monkeypatch.setenv("WORKBENCH_OWNER", "ada")
    launch(recipe, on="inline", runs_dir=server.runs).wait()
    (tmp_path / "text.txt").write_text("Nobody trains on these words, which say little. " * 60)
    task = new_task(server.runs, "lowest", "60 s", tmp_path / "text.txt", title="Lowest loss")
    entry = Entry("20260101-000000-a", "tiny", "ada", recipe.hash, 2.5, 4.0, 9, 3.0, 0.0, recipe=recipe.to_dict())
    keep(server.runs, task, entry)
    made = Prediction(question="Which has learned?", value="A", made_at=1.0, outcome="B", outcome_at=2.0, right=False)
    record = Record(lesson="did_it_learn", learner="ben", predictions={"which": made})
    record.write(path_of(server.runs, "did_it_learn", "ben"))
    write_notebook(server.root / "board.ipynb", ["import workbench as wb\nwb.Lab()"])
    notebook = Notebook(page, server, "board.ipynb")
    notebook.hide_sidebar()
    notebook.run(0)
    page.locator(".lab-whole").evaluate("lab => lab.scrollIntoView()")
    page.get_by_role("tab", name="Board", exact=True).click()
    board = page.get_by_role("tabpanel", name="Board", exact=True)
    owners = board.get_by_role("region", name="owners and their runs")
    expect(owners.get_by_role("row", name="ada")).to_contain_text("finished")
    expect(board.get_by_role("region", name="lesson did_it_learn")).to_contain_text("A → B, wrong")
    # Of another process: it comes by itself.
    monkeypatch.setenv("WORKBENCH_OWNER", "cem")
    launch(recipe, on="inline", runs_dir=server.runs).wait()
    expect(owners.get_by_role("row", name="cem")).to_contain_text("100%")
    other = launch(recipe.with_(seed=7, name="other"), on="inline", runs_dir=server.runs)
    other.wait()
    owners.get_by_role("button", name="cem").click()
    expect(owners.get_by_role("row")).to_have_count(4)
    choice = board.get_by_role("combobox", name="run to enter in lowest")
    choice.select_option(other.id)
    board.get_by_role("button", name="Enter run").click()
    expect(board.locator(".wb-board-said")).to_contain_text("bits per byte")
    expect(board.get_by_role("region", name="task lowest").get_by_role("row", name="cem")).to_be_visible()
    board.get_by_role("button", name="Open recipe: tiny of ada").click()
    expect(board.locator(".wb-board-said")).to_contain_text("is in the form")
    board.get_by_role("button", name="Launch again: tiny of ada").click()
    expect(board.locator(".wb-board-said")).to_contain_text("launched tiny")
    expect(board.locator(".wb-board-room")).to_contain_text("3 owners")
    assert_fit_in_both_themes(page, "board", "board", ".wb-board")
