"""``wb.tune`` and a tuning that is held: what it says, handles, results and reports."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import workbench as wb
from tests.experiments.tune.conftest import Planned, held
from workbench.base.errors import RunError, RunFailed
from workbench.experiments.__main__ import main as drive
from workbench.experiments.tune.tune import begin
from workbench.experiments.tune.tuning_words import cost_lines
from workbench.experiments.words import duration


def test_it_is_opened_shown_and_kept(planned: Planned, root: Path, tmp_path: Path) -> None:
    tuning = held(planned(name="<mine>"))
    live = tuning.shown()
    assert (live.title, live.status) == ("Tuning <mine>", "finished")
    assert list(live.drawings) == ["curves", "differences", "knob/optimizer.lr", "knob/architecture.layers"]
    assert live.lines[0] in tuning.summary
    settings, runs = [[pick for pick in live.picks if pick.single is single] for single in (False, True)]
    assert (live.best, len(settings)) == ("6", len(tuning.rows))
    assert {tuning.run_of(pick.key).id for pick in runs} == {run["run"] for run in tuning.race.result.runs}
    for drawing in live.drawings.values():
        assert drawing.figure().data
        assert "<table" in drawing.numbers()
    # All of its runs are the tuning's: of a sweep and a race nobody asked for.
    assert tuning.sweep.folder.tag == tuning.race.folder.tag == tuning.folder.tag == "tuning:mine"
    for which in (tuning.id, "<mine>", tuning.folder.path):
        assert wb.experiment(which, root).id == tuning.id
    result = tuning.result
    assert tuning.summary == result.summary == repr(tuning) == str(result)
    assert "confirmed: optimizer.lr 0.001 -> 0.008, architecture.layers 2 -> 1" in tuning.summary
    assert "1. optimizer.lr 0.001 -> 0.008: 0.935 nats better while tuning; seeds explain up to 0.014" in tuning.summary
    assert "4. architecture.layers stays 1: 3 is 0.199 nats worse" in tuning.summary
    # Evidence is called what it is, and the result stands before it.
    assert "tuning score (nats)" in tuning.table
    assert "nothing: the recipe as it is" in tuning.table
    lines = tuning.summary.splitlines()
    assert lines[2].startswith("tuned is better than before by 1.135 nats")
    assert json.loads(result.write(tmp_path / "out" / "r.json").read_text())["stage"] == "confirmed"
    page = tuning.report(tmp_path / "r.html").read_text()
    # Said once to those who see the picture.
    assert re.sub(r"<img[^>]*>", "", page).count("tuned is better than before") == 1
    assert page.index("Result: the race") < page.index("Evidence: every setting that was tried")
    assert "&lt;mine&gt;" in page
    assert "<mine>" not in page.replace("\\u003cmine\\u003e", "")
    assert "tuned is better than before" in tuning.html()
    assert drive(["workbench.experiments.tune.tune:Tuning", str(tuning.folder.path)]) == 0, (
        "its driver has nothing left to do"
    )
    result.require()
    assert len(repr(result)) < 410
    with pytest.raises(AttributeError, match="a tuning's result has no 'heldout_loss'"):
        _ = result.heldout_loss


def test_a_budget_that_ends_in_the_middle_keeps_what_pays_and_says_so(planned: Planned) -> None:
    plan, sweep = planned()
    tuning = held((plan, replace(sweep, runs=4)))
    assert (tuning.recipe.optimizer.lr, tuning.stage) == (4e-3, "confirmed")
    tuned = duration(plan.division.tuning_seconds)
    assert f"the search was not over when its part of the budget, about {tuned} of 20 min, was spent" in tuning.summary
    assert any("settings, the recipe as it is among them, on seeds" in line for line in cost_lines(plan, sweep))


def test_one_that_is_not_over(planned: Planned) -> None:
    plan, sweep = planned()
    tuning = begin(replace(plan, version="0.0.1"), sweep)
    assert tuning.stage == "tuning"
    assert ": 0 of at most 19 settings done, now optimizer.lr\n" in tuning.summary
    assert "waiting for the process that picks the settings" in tuning.summary
    assert "no knob has been decided" in tuning.summary
    shown = tuning.shown()
    assert (tuning.table, shown.table) == ("", ""), "no titles without rows"
    assert any("waiting for the process" in line for line in shown.lines)
    assert "<table>" not in tuning.html()
    assert "begun by workbench 0.0.1, and this is" in tuning.summary
    assert tuning.recipe == plan.base()
    with pytest.raises(RunError, match="has no race: it is tuning"):
        _ = tuning.race
    with pytest.raises(RunFailed, match="is starting"):
        tuning.result.require()
