"""What may be tuned, and how its budget is divided: refusals before anything is launched."""

from __future__ import annotations

from typing import Any

import pytest

from tests.experiments.tune.conftest import SPACE, Planned
from workbench import presets
from workbench.base.errors import RecipeError
from workbench.experiments.tune.axes import AXES, space_asked
from workbench.experiments.tune.tune import begin
from workbench.experiments.tune.tuning_plan import TuningPlan
from workbench.experiments.tune.tuning_words import cost_lines
from workbench.recipes.recipe import Recipe


def test_the_budget_is_divided_and_read_back(planned: Planned) -> None:
    space = {**SPACE, "optimizer.beta2": [0.9, 0.95, 0.98, 0.99, 0.995]}
    plan, sweep = planned("5 min", space, each="5 s")
    parts = plan.division
    assert parts.seconds == 300
    assert 290 < parts.tuning_seconds + parts.race_seconds <= 300
    assert parts.tuning_seconds > 0.55 * 300, "60% is for tuning, but for what rounding leaves"
    assert (sweep.runs, sweep.seeds, sweep.recipe["data"]["kind"]) == (parts.points, (1000, 1001), "tuning_text")
    assert plan.race_seeds in (tuple(range(n)) for n in (4, 6, 10))
    tuning = begin(plan, sweep)
    assert tuning.plan == TuningPlan.read(tuning.folder) == plan
    assert tuning.sweep.plan == sweep
    more = planned("10 min", space, each="5 s")[0]
    assert len(more.race_seeds) == 10
    assert more.division.points > parts.points


def test_a_budget_that_is_too_small_says_what_it_takes(planned: Planned) -> None:
    with pytest.raises(
        RecipeError, match=r"budget '1 min' is too small: the first 3 settings \(optimizer.lr\)"
    ) as said:
        planned("1 min", each="5 s")
    assert str(said.value).endswith("or less time to each run (each, or --each; now 5 s)")
    needed = str(said.value).partition("give it at least ")[2].partition(" min")[0]
    plan, _ = planned(f"{float(needed) * 1.01:.4f} min", each="5 s")
    assert (plan.division.points, len(plan.race_seeds)) == (3, 4)


@pytest.mark.parametrize(("options", "each"), [({"each": "5 s"}, " of 5 s each"), ({}, "")])
def test_a_budget_that_is_too_small_is_refused_before_anything_is_measured(
    planned: Planned, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], each: str
) -> None:
    def measured(*_: object) -> None:
        raise AssertionError("measured, or read")

    monkeypatch.setattr("workbench.forecasting.calibration.calibrated", measured)
    monkeypatch.setattr("workbench.experiments.race.race_plan.same_text", measured)
    with pytest.raises(RecipeError, match=f"'10 s' is too small: the first 3 settings .* on 2 seeds{each} take"):
        planned("10 s", rates=None, **options)


def test_runs_that_are_too_short_to_be_raced_are_said_before(planned: Planned) -> None:
    assert planned(each="5 s")[0].warnings == ()
    plan, sweep = planned(axes={"optimizer.lr": [1e-3, 1e-2]}, each="0.18 s")
    (line,) = plan.warnings
    assert line.startswith("runs of 0.18 s may be too short to be raced; they may not get 0.1 nats below word ")
    assert line.endswith(": give each run more time (each=..., `--each`)")
    assert f"  note: {line}" in cost_lines(plan, sweep)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"budget": None}, "needs a total budget"),
        ({"budget": "600 steps"}, "a tuning divides time"),
        ({"each": "1e6 tokens"}, "each: a tuning divides time"),
        ({"axes": {}}, "there is nothing to tune"),
        ({"axes": ["rates"]}, "axes: unknown value 'rates'; did you mean 'rate'"),
        ({"axes": {"optimizer.rl": [1, 2]}}, "did you mean 'lr'"),
        ({"axes": {"data.kind": ["files", "embedded"]}}, "compares on one text"),
        ({"axes": {"budget.amount": [1, 2]}}, "every run of a tuning has one budget"),
        ({"seeds": 1}, "2 to 6 different ones"),
        ({"race_seeds": 3}, "4 to 100 different ones"),
        ({"seeds": [1, 2]}, "race_seeds: 1, 2 would be tuned on"),
        ({"share": 1}, "share: of the budget"),
        ({"each": "0.01 s"}, "is too small"),
    ],
)
def test_refusals(planned: Planned, options: dict[str, Any], said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        planned(**options)


def test_a_recipe_that_cannot_run_here_is_refused_first(planned: Planned, tiny: Recipe) -> None:
    with pytest.raises(RecipeError, match="threads"):
        planned(recipe=tiny.with_(execution={"threads": 4096}))


def test_axes_by_default_are_those_that_the_recipe_has() -> None:
    space = space_asked(None, presets.fast())
    assert list(space)[:2] == ["optimizer.lr", "optimizer.schedule.warmup"], "worth most, so first"
    assert {path.split(".")[0] for path in space} == {"optimizer", "architecture", "depth", "data"}
    assert list(space_asked(["data", "rate"], presets.fast())) == [
        "optimizer.lr", "optimizer.schedule.warmup", "data.batch_size"
    ]  # fmt: skip
    one = presets.fast().with_(architecture={"layers": 1}, optimizer={"schedule": "cosine"})
    assert 0 not in space_asked(["architecture"], one)["architecture.layers"]
    assert "optimizer.schedule.hold" not in space_asked(None, one)
    assert space_asked(SPACE, one) == SPACE
    assert AXES[0] == "rate"
