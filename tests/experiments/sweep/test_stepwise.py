"""Axis after axis: what is tried, in which order, and what is kept only where it pays by more than seeds differ."""

from __future__ import annotations

from typing import Any

import pytest

from tests.experiments.sweep.conftest import Planned, Trained, held
from workbench.base.errors import RecipeError
from workbench.experiments.sweep.space import Knob
from workbench.experiments.sweep.stepwise import Settings
from workbench.experiments.sweep.sweep import Sweep
from workbench.experiments.sweep.sweep_status import noise, search
from workbench.recipes.recipe import Recipe

SPACE = {"optimizer.lr": "1e-4..1e-1", "architecture.layers": [2, 1, 3], "optimizer.kind": ["adamw", "lion"]}


def swept(planned: Planned, tiny: Recipe, space: dict[str, Any] = SPACE, runs: int = 40) -> Sweep:
    recipe = tiny.with_(optimizer={"lr": 1e-3})
    return held(planned(space, recipe, sampler="stepwise", runs=runs, seeds=2), Trained())


def test_a_range_is_climbed_and_what_pays_is_kept(planned: Planned, tiny: Recipe) -> None:
    sweep = swept(planned, tiny)
    assert [point.values["optimizer.lr"] for point in sweep.points[:6]] == [1e-3, 5e-4, 2e-3, 4e-3, 8e-3, 1.6e-2]
    found = search(sweep.plan, sweep.look())
    assert found.over
    assert found.current == {"optimizer.lr": 8e-3, "architecture.layers": 1, "optimizer.kind": "adamw"}
    kept = [(step.path, step.before, step.after) for step in found.steps if step.kept]
    assert kept == [("optimizer.lr", 1e-3, 8e-3), ("architecture.layers", 2, 1)]
    assert [step.round for step in found.steps] == [1, 1, 1, 2, 2, 2], "a second round finds nothing more"
    # Another optimizer brings its own rate, not the one that was tuned for AdamW.
    lion = next(point for point in sweep.points if point.values["optimizer.kind"] == "lion")
    assert lion.values["optimizer.lr"] == 1e-3
    assert sweep.status == "finished"
    assert f"{len(sweep.points)} of {len(sweep.points)} points done" in sweep.summary


def test_what_only_luck_favours_is_not_kept(planned: Planned, tiny: Recipe) -> None:
    sweep = swept(planned, tiny, {"architecture.layers": [2, 3]})
    found = search(sweep.plan, sweep.look())
    (step,) = found.steps
    # Seeds 1000 and 1001 differ by 0.01: a standard deviation of 0.00707, and 2 * sqrt(2 / 2) of it is needed.
    assert noise(sweep.plan, sweep.look()) == pytest.approx(2 * 0.00707, rel=1e-3)
    assert not step.kept
    assert step.best.gain == pytest.approx(0.001)
    assert 0 < step.best.gain < step.needed
    assert found.current == {"architecture.layers": 2}


def test_the_number_of_points_ends_it_with_what_is_kept_by_then(planned: Planned, tiny: Recipe) -> None:
    sweep = swept(planned, tiny, runs=4)
    found = search(sweep.plan, sweep.look())
    # The climb was not over, and what it had reached by then pays all the same.
    assert (len(sweep.points), found.over, found.current["optimizer.lr"]) == (4, False, 4e-3)
    assert found.wanted[0]["optimizer.lr"] == 8e-3
    assert (found.steps[0].path, found.steps[0].kept) == ("optimizer.lr", True)
    assert sweep.status == "finished"


def test_a_point_that_cannot_train_is_recorded_and_never_kept(planned: Planned, tiny: Recipe) -> None:
    sweep = swept(planned, tiny, {"architecture.heads": [2, 3], "architecture.width": [32, 48]})
    assert [each.status for each in sweep.look().points] == ["done", "failed", "done"]
    assert search(sweep.plan, sweep.look()).current == {"architecture.heads": 2, "architecture.width": 32}


def test_knobs_that_the_present_choice_does_not_have_wait_for_it(planned: Planned, tiny: Recipe) -> None:
    space = {"depth.theta": [0.5, 0.7], "depth.kind": ["full", "progressive_drop"]}
    assert Settings(tiny.to_dict()).start(dict.fromkeys(space, Knob())) == {"depth.kind": "full"}
    sweep = swept(planned, tiny, space)
    assert [point.values for point in sweep.points] == [
        {"depth.kind": "full"}, {"depth.kind": "progressive_drop", "depth.theta": 0.5}
    ]  # fmt: skip


def test_one_seed_is_refused(planned: Planned, tiny: Recipe) -> None:
    with pytest.raises(RecipeError, match="every point needs at least two: seeds=2, or --seeds 2"):
        planned(SPACE, tiny, sampler="stepwise", runs=5)
