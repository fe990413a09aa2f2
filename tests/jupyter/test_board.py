"""The board's widget: tells its page what changes, and launches an entry again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jupyter.messages import hear, say
from tests.tiny_runs import tiny_recipe, wait_until
from workbench.client.run_list import runs
from workbench.jupyter.board import Board, BoardAnswers
from workbench.jupyter.runs.runs_table import RunsTable
from workbench.recipes.recipe import Recipe
from workbench.workshop.task import Entry, keep, new_task


@pytest.fixture
def entered(corpus: Path, tmp_path: Path) -> Recipe:
    """A recipe with an entry in a task, whose run is gone."""
    text = tmp_path / "text.txt"
    text.write_text("Nobody trains on these words, which say little. " * 60)
    task = new_task(tmp_path / "runs", "first", "60 s", text, title="Lowest")
    recipe = tiny_recipe(corpus, steps=3).with_(objective="causal")
    keep(tmp_path / "runs", task, Entry("20260101-000000-gone", "gone", "ada", recipe.hash, 2.5, 4.0, 100, 3.0, 0.0,
                                        recipe=recipe.to_dict()))  # fmt: skip
    return recipe


def test_a_notebook_without_a_page_has_tables(entered: Recipe, tmp_path: Path) -> None:
    shown = Board(tmp_path / "runs", live=False)._repr_mimebundle_()
    assert set(shown) == {"text/html", "text/plain"}
    assert "Task Lowest: 60 core seconds, causal" in shown["text/plain"]
    assert "no runs in " in shown["text/html"]


@pytest.mark.process
def test_a_page_hears_of_changes_and_launches_an_entry_again(
    entered: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = Board(tmp_path / "runs", live=True)
    heard = hear(board, monkeypatch)
    say(board, {"board": "open"})
    (shown,) = [each["found"] for each in heard if each["board"] == "shown"]
    assert shown["owners"] == []
    assert shown["tasks"][0]["entries"][0]["recipe_hash"] == entered.hash
    say(board, {"board": "look"})
    assert len(heard) == 1, "nothing has changed"
    say(board, {"board": "launch", "task": "first", "recipe": entered.hash})
    assert [each["text"] for each in heard if each["board"] == "said"] == ["launched tiny again"]
    (run,) = runs(tmp_path / "runs")
    assert run.recipe.hash == entered.hash
    last = [each["found"]["owners"] for each in heard if each["board"] == "shown"][-1]
    assert [each["id"] for owner in last for each in owner["runs"]] == [run.id]
    say(board, {"board": "launch", "task": "first", "recipe": "0" * 10})
    assert heard[-1]["text"] == "task 'first' has no entry of recipe '0000000000'; the board lists them"
    run.wait(timeout=120)
    said = len([each for each in heard if each["board"] == "said"])
    say(board, {"board": "enter", "task": "first", "run": run.id})
    wait_until(lambda: len([each for each in heard if each["board"] == "said"]) > said, 120, "the answer")
    (text, error) = [(each["text"], each["error"]) for each in heard if each["board"] == "said"][-1]
    assert text.startswith(f"recipe {entered.hash} has its entry in task 'first' already, run ")
    assert error
    board.close()


def test_a_form_gets_the_recipe_of_an_entry(entered: Recipe, tmp_path: Path) -> None:
    table, told, put = RunsTable(tmp_path / "runs", refresh_seconds=0), [], []
    answers = BoardAnswers(table, told.append, lambda recipe, words: put.append(recipe))
    assert answers.hear({"board": "put", "task": "first", "recipe": entered.hash})
    assert [recipe.hash for recipe in put] == [entered.hash]
    assert not answers.hear({"ask": 1}), "questions of others are none of its own"
    table.close()
