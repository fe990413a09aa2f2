"""A sweep brought forward point by point, killed and gone on with: what is launched, and when."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.experiments.sweep.conftest import Planned, Starter, finish, held, loss
from tests.forecasting.machine_rates import RATES
from workbench.base.errors import EngineError, RunError
from workbench.client.run import Run
from workbench.experiments.sweep import sweep as sweeping
from workbench.experiments.sweep.sweep import Sweep, begin
from workbench.experiments.sweep.sweep_plan import Point, SweepPlan
from workbench.experiments.sweep.sweep_status import noise
from workbench.recipes.recipe import Recipe
from workbench.store import control
from workbench.store.folder import RunFolder, write_json
from workbench.store.labels import read_labels
from workbench.store.state import write_state

LEARNING = {"optimizer.lr": "1e-4..1e-2", "architecture.layers": [1, 2]}


def test_every_run_is_launched_once_the_first_seed_of_all_points_first(planned: Planned) -> None:
    plan, points = planned(seeds=2)
    folder, starter = begin(plan, points).folder, Starter()
    Sweep(folder).advance(starter)
    Sweep(folder).advance(starter)
    assert [recipe.seed for recipe in starter.launched] == [1000, 1000], "two at a time"
    assert folder.read_state()["message"] == "0 of 6 points done, 2 runs waiting"
    while folder.read_state()["status"] == "sweeping":
        starter.end_all()
        Sweep(folder).advance(starter)
    assert [recipe.seed for recipe in starter.launched] == [1000] * 6 + [1001] * 6
    assert [event["kind"] for event in folder.read_events()] == ["launched"] * 12
    labels = read_labels(plan.run_folder((points[4], 1001)))
    assert labels.tags == ("sweep:tiny-optimizer.lr-architecture.lay",)
    assert labels.notes == f"sweep {plan.id}: point 4 seed 1001"
    now = Sweep(folder).advance(starter)
    assert (now.over, now.best, len(starter.launched)) == (True, 3, 12)
    assert now.points[3].scores == [loss(points[3].values, seed) for seed in plan.seeds]


def test_a_point_that_fails_is_recorded_and_the_others_go_on(planned: Planned) -> None:
    starter = Starter()

    def start(recipe: Recipe, **options: str) -> Run:
        if recipe.optimizer.lr == 2e-3:
            raise EngineError("not installed")
        return starter(recipe, **options)

    plan, points = planned()
    folder = begin(plan, points).folder

    def full(*_: object, **__: object) -> Run:
        raise RunError("No space left on device")

    with pytest.raises(RunError, match="No space"):
        Sweep(folder).advance(full)
    while folder.read_state()["status"] == "sweeping":
        now = Sweep(folder).advance(start)
        for run, recipe in starter.going:
            if recipe.optimizer.lr == 4e-3:
                write_state(run, status="failed", error="out of memory")
            else:
                finish(run, 2.5)
        starter.going.clear()
    assert folder.read_state()["status"] == "finished"
    assert [each.status for each in now.points] == ["done", "done", "failed", "failed", "failed", "failed"]
    assert "not installed" in now.points[2].error
    assert "out of memory" in now.points[5].error
    assert len(starter.launched) == 4


def test_a_sweep_without_a_score_has_failed(planned: Planned) -> None:
    plan, points = planned({"optimizer.lr": [1e-3]})
    folder = begin(plan, points).folder
    Sweep(folder).advance(Starter())
    write_state(plan.run_folder((points[0], 1000)), status="failed", error="out of memory")
    assert Sweep(folder).advance().best is None
    assert folder.read_state()["status"] == "failed"


def test_a_driver_sizes_points_by_the_rates_that_the_sweep_was_begun_with(
    planned: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(*_: object) -> None:
        raise AssertionError("this machine is asked")

    monkeypatch.setattr("workbench.forecasting.calibration.calibrated", measured)
    plan, points = planned(
        {"architecture.layers": [1, 2], "optimizer.lr": [1e-3, 2e-3]}, sampler="stepwise", seeds=2, runs=4
    )
    folder, starter = begin(plan, points, RATES).folder, Starter()
    Sweep(folder).advance(starter)
    assert len(starter.launched) > 0


def test_a_learning_sampler_goes_on_where_its_driver_was_killed(planned: Planned) -> None:
    plan, _ = planned(LEARNING, sampler="tpe", runs=8)
    plan = replace(plan, at_once=1)
    whole = held((plan, []))
    assert len(whole.points) == 8
    # The same sweep of another folder, its driver killed after each look: before, or after, the launch.
    again = begin(replace(plan, runs_dir=f"{plan.runs_dir}/again/runs"), [])
    folder, starter = again.folder, Starter()

    def killed(*_: object, **__: object) -> Run:
        raise RunError("killed")

    while folder.read_state()["status"] == "sweeping":
        if len(starter.launched) % 2:
            with contextlib.suppress(RunError):
                Sweep(folder).advance(killed, RATES)
        Sweep(folder).advance(starter, RATES)
        starter.end_all()
    assert [point.values for point in again.points] == [point.values for point in whole.points]
    assert len(starter.launched) == 8


def test_a_space_that_is_used_up_ends_the_sweep(planned: Planned) -> None:
    sweep = held(planned({"architecture.layers": [1, 2], "optimizer.lr": [1e-3, 2e-3]}, sampler="tpe", runs=9))
    assert sorted(point.label for point in sweep.points) == [
        "layers=1, lr=0.001", "layers=1, lr=0.002", "layers=2, lr=0.001", "layers=2, lr=0.002"
    ]  # fmt: skip
    assert sweep.status == "finished"
    assert "4 of 4 points done" in sweep.summary


@pytest.fixture
def stopping(planned: Planned, tiny: Recipe) -> Callable[[], tuple[SweepPlan, list[Point]]]:
    schedule = {"kind": "warmup_hold_decay", "warmup": 0.1, "hold": 0.5}
    recipe = tiny.with_(optimizer={"schedule": schedule}, budget={"evaluations": 8})
    rates = [k * 1e-3 for k in range(1, 9)]

    def plan() -> tuple[SweepPlan, list[Point]]:
        found, points = planned({"optimizer.lr": rates}, recipe, early_stopping="halving")
        return replace(found, at_once=8), points

    return plan


def test_weak_points_are_ended_at_a_quarter(
    stopping: Callable[[], tuple[SweepPlan, list[Point]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, points = stopping()
    folder, stopped = begin(plan, points).folder, []
    monkeypatch.setattr(Run, "ask", lambda run, verb, **_: stopped.append(run.id))
    starter = Starter()
    Sweep(folder).advance(starter)
    for place, (run, _) in enumerate(starter.going):
        write_json(run.recipe, {"budget": {"amount": 200, "unit": "steps"}})
        write_json(run.evaluations, {"heldout": [{"step": 50, "loss": 5.0 + place}]})
    now = Sweep(folder).advance(starter)
    assert [each.point.index for each in now.points if each.status == "ended early"] == [4, 5, 6, 7]
    assert stopped == [plan.run_folder((points[index], 1000)).id for index in range(4, 8)]
    assert all(each.score >= 9.0 for each in now.points if each.status == "ended early")
    for run, _ in starter.going:
        finish(RunFolder(run.path), 2.0) if run.id not in stopped else write_state(run, status="stopped")
    Sweep(folder).advance(starter)
    assert folder.read_state()["status"] == "finished"


def test_all_seeds_of_a_weak_point_end_also_where_the_driver_was_killed_before(
    planned: Planned, tiny: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = {"kind": "warmup_hold_decay", "warmup": 0.1, "hold": 0.5}
    recipe = tiny.with_(optimizer={"schedule": schedule}, budget={"evaluations": 8})
    rates = [k * 1e-3 for k in range(1, 5)]
    plan, points = planned({"optimizer.lr": rates}, recipe, early_stopping="halving", seeds=2)
    plan = replace(plan, at_once=8)
    folder = begin(plan, points).folder
    Sweep(folder).advance(Starter())
    for point in points:
        run = plan.run_folder((point, 1000))
        write_json(run.recipe, {"budget": {"amount": 200, "unit": "steps"}})
        write_json(run.evaluations, {"heldout": [{"step": 50, "loss": 5.0 + point.index}]})

    def killed(_runs: object, by: str) -> list[str]:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(sweeping, "stop", killed)
        with pytest.raises(RuntimeError):
            Sweep(folder).advance(Starter())
    Sweep(folder).advance(Starter())
    asked = {(point.index, seed) for point in points for seed in plan.seeds
             if control.pending(plan.run_folder((point, seed)))}  # fmt: skip
    assert asked == {(index, seed) for index in (2, 3) for seed in plan.seeds}


def test_a_point_that_diverged_says_nothing_about_how_far_seeds_lie_apart(planned: Planned) -> None:
    def diverging(values: dict[str, float], seed: int) -> float:
        return math.nan if values["optimizer.lr"] == 4e-3 else loss(values, seed)

    sweep = held(planned({"optimizer.lr": [1e-3, 2e-3, 4e-3]}, seeds=2), Starter(diverging))
    assert 0 < noise(sweep.plan, sweep.look()) < 0.1
    # All points the same: ranks agree with nothing.
    same = held(planned({"optimizer.lr": [k * 1e-3 for k in range(1, 6)]}), Starter(lambda *_: 2.0))
    assert json.dumps(same.result["would_have_ended"], allow_nan=False) != "[]"
