"""``wb.race`` and a race that is held: real runs, a driver that is killed, and a handle in another process's place."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import workbench as wb
from tests.experiments.drivers import drivers_in
from tests.experiments.race.conftest import held, written
from tests.forecasting.machine_rates import RATES
from tests.run_folders import processes_of
from tests.tiny_runs import wait_until
from workbench.base.errors import RunError, RunFailed
from workbench.client.run_list import runs
from workbench.experiments import experiment_folder
from workbench.experiments.experiment_folder import RaceFolder
from workbench.experiments.race.race import Race, begin
from workbench.experiments.race.race_plan import RacePlan, plan_race
from workbench.recipes.recipe import Recipe
from workbench.store.folder import write_json
from workbench.store.trash import delete, empty

Planned = Callable[..., RacePlan]


@pytest.mark.process
def test_a_race_survives_its_driver_and_trains_every_run_once(
    tiny: Recipe, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One whose driver has begun and is gone is not waited for as one that has yet to start.
    monkeypatch.setattr(experiment_folder, "START_SECONDS", 1000.0)
    fast = tiny.with_(objective="causal", optimizer={"lr": 1e-2})
    said: list[str] = []
    race = wb.race(
        {"baseline": fast, "slow": fast.with_(optimizer={"lr": 2e-3})}, "60 steps", 2, reference=(), runs_dir=root,
        rates=RATES, say=said.append,
    )  # fmt: skip
    assert isinstance(race, Race)
    assert any("4 runs" in line for line in said)
    wait_until(lambda: len(runs(root)) >= 1, what="the first launch")
    (driver,) = drivers_in(RaceFolder.root(root))
    driver.kill()
    wait_until(lambda: race.status == "interrupted", what="the end of the driver")
    alive = {run.id for run in runs(root)}
    # Whoever waits brings it a new driver; runs have gone on meanwhile.
    found = race.wait(240)
    assert isinstance(found, dict)
    assert found["status"] == race.status == "finished"
    assert found["verdict"] == "worse", found["summary"]
    assert found["difference"] == pytest.approx(2.5, abs=0.5)
    assert {run.id for run in runs(root)} == {row["run"] for row in found["runs"]} >= alive
    assert len(found["runs"]) == 4
    # Of the runs that the first driver began, one may have had a folder and no process yet: it was resumed.
    assert all(run.state.attempt == 1 or run.id in alive for run in runs(root))
    wait_until(lambda: not drivers_in(RaceFolder.root(root)), what="the end of the driver")
    launched = [event["run"] for event in race.folder.read_events() if event["kind"] == "launched"]
    # The one that stood between launch and event when the driver was killed has none.
    assert len(launched) == len(set(launched)) >= 3
    json.dumps(found)


@pytest.mark.process
def test_cancelling_stops_what_trains(tiny: Recipe, root: Path) -> None:
    race = wb.race({"a": tiny, "b": tiny}, "100000 steps", 2, reference=(), runs_dir=root, rates=RATES, say=None)
    assert isinstance(race, Race)
    wait_until(lambda: len(runs(root)) >= 1, what="the first launch")
    assert Race(race.id[:18], root).cancel()
    assert "b against a: the race was cancelled before they could be judged" in race.summary
    races = RaceFolder.root(root)
    wait_until(lambda: not processes_of(root) and not drivers_in(races), what="the end of all processes")
    with pytest.raises(RunFailed, match="cancelled: it cannot be resumed"):
        race.wait(5)


@pytest.mark.extended
@pytest.mark.process
def test_an_arm_that_diverges_ends_a_race_of_two_and_nothing_goes_on(tiny: Recipe, root: Path) -> None:
    absurd = tiny.with_(optimizer={"lr": 100.0, "weight_decay": 1.0})
    # The baseline would train for minutes; the arm fails at once, on the core beside it.
    plan = plan_race({"baseline": tiny, "mine": absurd}, "20000 steps", 2, reference=(), runs_dir=root, rates=RATES)
    race = begin(replace(plan, at_once=2))
    with pytest.raises(RunFailed, match=r"failed: mine failed, so there is no verdict: .*became nan"):
        race.wait_blocking(240)
    assert race.status == "failed"
    assert "; nothing could be judged" in race.summary
    races = RaceFolder.root(root)
    wait_until(lambda: not processes_of(root) and not drivers_in(races), what="the end of all processes")
    assert [row["status"] for row in race.rows if row["arm"] == "baseline"] in (["stopped"], ["done"], [])


def test_a_race_is_opened_by_its_id_and_says_what_it_found(planned: Planned, root: Path) -> None:
    plan = planned(seeds=6)
    race = held(plan)
    again = wb.experiment(plan.id[:24], root)
    assert again.status == "finished"
    assert again.verdicts["mine"].verdict == "worse"
    assert again.summary == race.wait_blocking(1)["summary"] == repr(again)
    assert asyncio.run(again.wait_async(1))["verdict"] == "worse"
    assert len(again.rows) == len(again.frame()) == 16
    # A page breaks <pre> within words; a table's cells it does not.
    assert "<pre>" not in again._repr_html_()
    assert again._repr_html_() == again.result._repr_html_()
    assert "it says</th>" in again._repr_html_()
    assert again.note == ""


def test_runs_in_the_trash_keep_their_verdict_and_a_report_outlives_them(planned: Planned, root: Path) -> None:
    race = held(planned())
    before, report = race.result, race.report()
    for run in runs(root):
        delete(run.folder)
    assert race.result == before
    assert race.report() == report
    written, number = report.read_text(), len(before["runs"])
    assert empty(root) == number
    with pytest.raises(RunError, match="deleted for good"):
        race.report()
    assert report.read_text() == written


def test_a_race_is_starting_until_its_driver_should_be_up(planned: Planned) -> None:
    plan = planned()
    folder = RaceFolder(RaceFolder.root(plan.runs_dir) / plan.id)
    folder.create(plan.to_dict())
    assert Race(folder).status == "starting"
    assert "starting: 0 of 16 runs done" in Race(folder).summary
    write_json(folder.state, {**folder.read_state(), "time": 0})
    assert Race(folder).status == "interrupted"
    assert f"nobody carries it on; `{folder.command}` does" in Race(folder).summary


def test_a_place_that_cannot_be_written_is_said(planned: Planned, tmp_path: Path) -> None:
    plan = planned()
    (tmp_path / "races").write_text("")
    with pytest.raises(RunError, match="cannot be written"):
        begin(plan)


def test_a_race_that_is_not_over_can_be_waited_for_in_vain(planned: Planned) -> None:
    folder = written(planned())
    lock = folder.driver_lock()
    with lock, pytest.raises(TimeoutError, match="has not ended in time; it goes on"):
        Race(folder).wait_blocking(0)
    write_json(folder.state, {"status": "failed", "message": "the baseline failed"})
    with pytest.raises(RunFailed, match="failed: the baseline failed"):
        Race(folder).wait_blocking(0)
