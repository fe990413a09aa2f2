"""Races, sweeps and tunings that the version before wrote: they open, say the same and go on to their end.

``version_before.json`` holds the files of four experiments of revision f3be76a7: a race that has ended, a race and a
sweep in the middle, and a tuning whose race has begun.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import workbench as wb
from tests.experiments.begun import root
from tests.experiments.race.conftest import Starter as RaceStarter
from tests.experiments.race.conftest import loss
from tests.experiments.sweep.conftest import Starter, Trained
from tests.forecasting.machine_rates import RATES

__all__ = ["root"]
BEFORE = json.loads((Path(__file__).parent / "version_before.json").read_text())


@pytest.fixture
def kept(root: Path, corpus: Path) -> Path:
    """The runs folder of the version before."""
    for name, text in BEFORE["files"].items():
        path = root.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("{ROOT}", str(root.parent)).replace("{CORPUS}", str(corpus)))
    return root


def test_a_race_that_has_ended_says_the_same(kept: Path) -> None:
    race = wb.experiment("ended", kept)
    found = race.result
    assert (race.status, found["verdict"], found["difference"]) == ("finished", *BEFORE["said"]["race"].values())
    assert race.report().stat().st_size > 10_000
    assert "mine is worse than baseline" in race.html()


def test_a_race_in_the_middle_goes_on(kept: Path) -> None:
    race = wb.experiment("going", kept)
    assert (race.status, [row["status"] for row in race.rows]) == ("interrupted", ["done", "done"])
    starter = RaceStarter(race.plan, loss)
    for _ in range(4):
        race.advance(starter)
        starter.end_all()
    assert (race.status, len(starter.launched)) == ("finished", 2), "the other two had trained"


def test_a_sweep_in_the_middle_goes_on(kept: Path) -> None:
    sweep, starter = wb.experiment("rates", kept), Starter()
    assert sweep.best == 0
    for _ in range(4):
        sweep.advance(starter, RATES)
        starter.end_all()
    assert (sweep.status, sweep.best, len(starter.launched)) == ("finished", 1, 2)


def test_a_tuning_whose_race_has_begun_goes_on(kept: Path) -> None:
    tuning, starter = wb.experiment("tuned", kept), Trained()
    assert tuning.stage == "tuned, not yet confirmed"
    while tuning.folder.read_state()["status"] == "tuning":
        tuning.advance(starter, RATES)
        starter.end_all()
    assert (tuning.status, tuning.stage) == ("finished", "confirmed")
    assert tuning.recipe.architecture.layers == 1
    assert replace(tuning.plan, version="") != tuning.plan
