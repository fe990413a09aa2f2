"""What may be swept: refusals before anything is launched, points, what a sweep costs."""

from __future__ import annotations

import pytest

from tests.experiments.sweep.conftest import SPACE, Planned
from tests.forecasting.machine_rates import RATES
from workbench.base.errors import RecipeError
from workbench.experiments.sweep.sweep import begin
from workbench.experiments.sweep.sweep_plan import SweepPlan
from workbench.experiments.sweep.sweep_words import cost_lines
from workbench.forecasting.forecast import forecast


def test_a_grid_is_planned_whole_and_read_back(planned: Planned) -> None:
    plan, points = planned(name="rates")
    assert [point.values["optimizer.lr"] for point in points] == [1e-3, 1e-3, 2e-3, 2e-3, 4e-3, 4e-3]
    assert (plan.runs, plan.seeds, plan.cost.runs) == (6, (1000,), 6)
    sweep = begin(plan, points)
    assert sweep.plan == SweepPlan.read(sweep.folder) == plan
    assert sweep.points == points
    recipe = plan.recipe_of((points[3], 1000))
    assert (recipe.optimizer.lr, recipe.architecture.layers, recipe.seed) == (2e-3, 2, 1000)
    assert recipe.name == "lr=0.002, layers=2"
    ahead = forecast(recipe, rates=RATES)
    assert points[3].share is not None
    assert (points[3].share.parameters, points[3].share.memory_bytes) == (ahead.parameters, ahead.memory_bytes)
    assert len({plan.run_folder((point, seed)).id for point in points for seed in (0, 1)}) == 12


def test_points_that_are_the_same_are_one_and_those_that_cannot_train_are_kept(planned: Planned) -> None:
    plan, points = planned({"depth.kind": ["full", "progressive_drop"], "depth.theta": [0.5, 0.7]})
    assert [point.label for point in points] == [
        "depth=full", "depth=progressive_drop, theta=0.5", "depth=progressive_drop, theta=0.7"
    ]  # fmt: skip
    plan, points = planned({"architecture.heads": [2, 3], "architecture.width": [32, 48]})
    assert [bool(point.error) for point in points] == [False, False, True, False]
    assert (plan.runs, plan.cost.runs) == (4, 3)
    assert " (from speeds measured on the machine)" in cost_lines(plan, points)[0]
    assert any("point 2 (heads=3, width=32) cannot be trained" in line for line in cost_lines(plan, points))


def test_random_points_are_different_and_repeat(planned: Planned) -> None:
    drawn = [[point.values for point in planned(sampler="random", runs=5, seed=seed)[1]] for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len({str(values) for values in drawn[0]}) == 5
    with pytest.raises(RecipeError, match="hardly more than 6 different points, and 7 are asked"):
        planned(sampler="random", runs=7)


def test_a_learning_sampler_draws_nothing_before_it_begins(planned: Planned) -> None:
    plan, points = planned({"optimizer.lr": "1e-4..1e-2"}, sampler="tpe", runs=9, seeds=2)
    assert (points, plan.runs, plan.cost.runs) == ([], 9, 18)


def test_equal_reference_time_gives_the_larger_model_fewer_steps(planned: Planned) -> None:
    _, points = planned(budget="3 s")
    small, large = (point.share.steps for point in points[:2] if point.share)
    assert small > 1.5 * large


def test_seeds_of_races_are_warned_of(planned: Planned) -> None:
    plan, points = planned(seeds=[1, 2])
    assert "cannot be claimed on them" in "\n".join(cost_lines(plan, points))
    assert planned(seeds=3)[0].seeds == (1000, 1001, 1002)
    assert planned()[0].warnings == ()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seeds": 0}, "1 to 20 different ones"),
        ({"seed": "one"}, "seed: the sampler's is a whole number from 0 on, got 'one'"),
        ({"runs": "many"}, "runs: how many points is a whole number, got 'many'"),
        ({"budget": "3 steps"}, r"point 0 \(lr=0.001, layers=1\) gets 3 steps"),
        ({"budget": "100 steps", "space": {"budget.amount": [100, 200]}}, "leave out the budget of the whole sweep"),
        ({"space": {"objective.kind": ["masked", "causal"]}}, "scores of different kinds"),
        ({"space": {"data.tokenizer.vocabulary_size": [128, 256]}}, "different tokenizers"),
        ({"space": {"data.heldout_fraction": [0.1, 0.2]}}, "scored on different text"),
        ({"early_stopping": "halving"}, "would judge too soon: losses are compared at a quarter"),
        ({"early_stopping": "halving", "score": "bits_per_byte"}, "take score='nats'"),
        ({"space": {"optimizer.lr": [1e-4 * k for k in range(1, 40)], "optimizer.weight_decay": [
            0.01 * k for k in range(1, 40)]}}, "this grid has 1,521 points"),
    ],
)  # fmt: skip
def test_refusals(planned: Planned, options: dict[str, object], said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        planned(options.pop("space", SPACE), **options)
