"""What is asked before a launch."""

from __future__ import annotations

from pathlib import Path

from tests.jupyter.live import run_folder
from workbench import presets
from workbench.jupyter.lab.launch_question import question, same_running


def test_nothing_is_asked_of_what_is_usual_and_one_question_covers_both() -> None:
    assert question("", "") is None
    twice = question("", "mine")
    assert twice is not None
    assert (twice.button, twice.bad) == ("Launch again", False)
    assert twice.said == "press again to start a second run: mine has this very recipe and has not ended"
    both = question("does not fit", "mine")
    assert both is not None
    assert (both.button, both.bad) == ("Launch anyway", True)
    assert "does not fit" in both.said
    assert "mine is a run of this very recipe" in both.whole


def test_a_run_that_cannot_be_read_here_keeps_nobody_from_launching(tmp_path: Path) -> None:
    recipe = presets.fast()
    newer = run_folder(tmp_path / "20260101-000000-newer-000000-0000", schema_version=99)
    mine = run_folder(tmp_path / "20260101-000001-mine-000000-0000")
    recipe.save(mine.recipe)
    rows = [{"id": run_id, "status": "running"} for run_id in ("gone", newer.id, mine.id)]
    assert same_running(recipe, rows[:2], tmp_path) == ""
    assert same_running(recipe, rows, tmp_path) == recipe.name
    assert same_running(recipe.with_(seed=9), rows, tmp_path) == ""
