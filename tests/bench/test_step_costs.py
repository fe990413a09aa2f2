"""From readings to what a step costs: ratios within rounds, outliers apart."""

from __future__ import annotations

from typing import Any

import pytest

from workbench import presets
from workbench.bench import rounds, step_costs
from workbench.bench.rounds import SpeedRounds
from workbench.bench.step_costs import cost, segment_seconds, squeezed


def readings(seconds: list[list[float]], tokens: int = 100, flops: float = 1e6) -> list[dict[str, Any]]:
    return [{"seconds": each, "stages": [0] * len(each), "tokens": tokens, "flops": flops} for each in seconds]


def test_an_outlier_is_set_apart_but_random_depth_is_not() -> None:
    assert segment_seconds([0.1, 0.2, 0.3]) == (pytest.approx(0.2), 0.0)
    mean, extra = segment_seconds([0.1, 0.1, 0.1, 5.1])
    assert mean == pytest.approx(0.1)
    assert extra == pytest.approx(5.0)


def test_a_slow_minute_cancels() -> None:
    # The second round ran on a machine twice as slow, for both; the arm takes half of the baseline's time, then all.
    ours, theirs = readings([[0.1, 0.1], [0.4, 0.4]], tokens=50), readings([[0.2, 0.2], [0.4, 0.4]])
    found = cost(ours, theirs)
    assert found["by_segment"] == [0.5, 1.0]
    assert found["ratio"] == pytest.approx((0.5 * 0.2 + 1.0 * 0.4) / 0.6)
    assert found["token_ratio"] == pytest.approx(found["ratio"] / 0.5), "half as many tokens in the same steps"
    assert found["flops_ratio"] == pytest.approx(2.0)


def test_what_a_transition_costs_is_what_its_step_takes_beyond_the_others_of_its_stage() -> None:
    ours = readings([[0.1, 0.1, 0.9, 0.2], [0.2, 0.5, 0.4, 0.4]])
    for segment, stages in zip(ours, ([0, 0, 1, 1], [1, 2, 2, 2]), strict=True):
        segment["stages"] = stages
    theirs = readings([[0.5] * 4, [0.5] * 4])
    found = cost(ours, theirs)
    assert found["transitions"] == 2
    assert found["transition_steps"] == pytest.approx((0.7 + 0.1) / 0.5)
    assert cost(theirs, theirs)["transitions"] == 0


def test_schedules_are_squeezed_whole() -> None:
    recipe = presets.fast()
    assert squeezed(recipe, 40).budget.amount == 40
    tokens = squeezed(recipe.with_(budget={"unit": "tokens"}), 40)
    assert tokens.budget.amount == 40 * recipe.data.most_rows * recipe.data.longest


def test_one_arm_that_cannot_run_does_not_cost_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def take_rounds(entrants: dict[str, Any], **_: Any) -> SpeedRounds:
        segment = {"seconds": [0.1], "wall_seconds": [0.2], "stages": [0], "tokens": 10, "flops": 1.0}
        answers = {name: [segment] for name in entrants if name != "broken"}
        return SpeedRounds({name: {} for name in answers}, answers, {"broken": "no such kernel"})

    monkeypatch.setattr(rounds, "take_rounds", take_rounds)
    base = presets.fast().with_(execution={"device": "cpu", "threads": 1})
    found = step_costs.step_costs(base, dict.fromkeys(("one", "broken", "two"), base), segments=1, steps=1)
    assert found["arms"]["broken"] == {"error": "no such kernel"}
    assert found["arms"]["one"]["ratio"] == found["arms"]["two"]["ratio"] == 1.0
    assert found["busy"][0] == 2.0, "wall over CPU seconds: somebody else was at work"


@pytest.mark.usefixtures("turns_here")
def test_real_contenders_are_compared(learnable: list[str]) -> None:
    base = presets.fast().with_assignments(learnable)
    found = step_costs.step_costs(base, {"deeper": base.with_(architecture={"layers": 3})}, segments=2, steps=3)
    assert found["arms"]["deeper"]["ratio"] > 0
    assert found["arms"]["deeper"]["token_ratio"] == found["arms"]["deeper"]["ratio"], "as many tokens per step"
    assert found["arms"]["deeper"]["flops_ratio"] > 1
    assert len(found["arms"]["deeper"]["by_segment"]) == 2
