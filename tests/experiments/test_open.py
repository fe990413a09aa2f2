"""``wb.experiment``: what a word stands for among races, sweeps and tunings."""

from __future__ import annotations

from pathlib import Path

import pytest

import workbench as wb
from tests.experiments.race.conftest import written
from tests.experiments.tune.conftest import Planned, held, planned, root, tiny
from tests.forecasting.machine_rates import RATES
from workbench.base.errors import RunError
from workbench.experiments.race.race_plan import plan_race as enter_race
from workbench.recipes.recipe import Recipe

__all__ = ["planned", "root", "tiny"]


def test_a_tuning_stands_before_its_sweep_and_its_race(planned: Planned, root: Path) -> None:
    tuning = held(planned(name="mine", axes={"architecture.layers": [2, 1]}))
    assert tuning.id == tuning.sweep.id == tuning.race.id
    for which in (tuning.id, "mine", tuning.folder.path):
        assert wb.experiment(which, root).folder == tuning.folder
    # A part by what is its own alone.
    assert wb.experiment("mine (tuning)", root).folder == tuning.sweep.folder
    assert wb.experiment(tuning.race.folder.path).folder == tuning.race.folder


def test_a_word_for_several_or_none_says_which_there_are(planned: Planned, root: Path, tiny: Recipe) -> None:
    with pytest.raises(RunError, match=r"no tuning or race or sweep or finetuning 'nope' beside .*; the latest: none"):
        wb.experiment("nope", root)
    tuning = held(planned(name="mine", axes={"architecture.layers": [2, 3]}))
    arms = {"baseline": tiny, "other": tiny.with_(optimizer={"lr": 2e-3})}
    race = written(enter_race(arms, "200 steps", name="mine", runs_dir=root, rates=RATES))
    with pytest.raises(RunError, match=f"'mine' names 2 experiments: tuning {tuning.id}, race {race.id}"):
        wb.experiment("mine", root)
    with pytest.raises(RunError, match=rf"'nope' beside .*; the latest: tuning {tuning.id}, race {race.id}$"):
        wb.experiment("nope", root)
    swift = written(enter_race(arms, "200 steps", name="swift", runs_dir=root, rates=RATES))
    with pytest.raises(RunError, match=rf"'swft' beside .*; nearest: race 'swift' \({swift.id}\)$"):
        wb.experiment("swft", root)
    with pytest.raises(RunError, match=rf"no race 'swft' beside .*; nearest: race 'swift' \({swift.id}\)$"):
        type(swift).find("swft", root)
    # As tables of runs and their tags write a name.
    spaced = written(enter_race(arms, "200 steps", name="mine, twice", runs_dir=root, rates=RATES))
    for which in ("mine, twice", "mine-twice", "race:mine-twice"):
        assert wb.experiment(which, root).folder == spaced
    assert wb.experiment("race:mine", root).id == race.id


def test_the_call_that_opens_one_opens_that_very_one(
    planned: Planned, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuning = held(planned(axes={"architecture.layers": [2, 1]}))
    assert tuning.opened_by == f'wb.experiment("{tuning.folder.path}")', "in another runs folder than this process's"
    monkeypatch.setenv("WORKBENCH_RUNS", str(root))
    assert tuning.opened_by == f'wb.experiment("{tuning.id}")'
    # The id of a stage stands for its tuning.
    for each in (tuning, tuning.sweep, tuning.race):
        assert eval(each.opened_by, {"wb": wb}).folder == each.folder
