"""RaPTr: lengths of paths by stage, statistics of the draws, scaling, refusals."""

from __future__ import annotations

import math

import pytest
import torch

from workbench.base.errors import RecipeError
from workbench.choices.depth.raptr import Raptr, path_probability
from workbench.choices.progress import Budget, Progress
from workbench.recipes.recipe import Recipe

DRAWS = 10_000


def test_path_probability() -> None:
    assert path_probability(6, 12, 2) == pytest.approx(0.4)
    assert path_probability(12, 12, 2) == 1.0
    assert path_probability(1, 12, 2) == 0.0, "fixed layers alone are more already"
    assert path_probability(2, 2, 2) == 1.0


@pytest.mark.parametrize(("stage", "length"), enumerate((6, 8, 10, 12)))
def test_kept_depth_of_every_stage(stage: int, length: int) -> None:
    choice = Raptr()
    # Each stage is as long as there are draws to take from it.
    budget = Budget(amount=4 * DRAWS)
    plans = [choice.plan(12, Progress(stage * DRAWS + n, 0, 0.0, budget), seed=3) for n in range(DRAWS)]
    kept = torch.tensor([plan.runs for plan in plans]).double()
    p = path_probability(length, 12, 2)
    deviation = (10 * p * (1 - p) / DRAWS) ** 0.5
    assert abs(float(kept.sum(1).mean()) - length) <= 3 * deviation + 1e-9
    assert kept[:, [0, 11]].all(), "the first and the last layer always run"
    assert ((kept.mean(0)[1:11] - p).abs() <= 4 * (p * (1 - p) / DRAWS) ** 0.5 + 1e-9).all()
    assert sum(plans[0].keep) == pytest.approx(length)
    if p < 1:
        correlation = torch.corrcoef(kept[:, 1:11].t()) - torch.eye(10, dtype=torch.float64)
        assert float(correlation.abs().max()) < 5 / DRAWS**0.5, "layers are drawn independently"


def test_default_lengths_cost_three_quarters() -> None:
    choice, budget = Raptr(), Budget(amount=400)
    lengths = [choice.length_at(12, Progress(step, 0, 0.0, budget)) for step in range(400)]
    assert sum(lengths) / 400 / 12 == pytest.approx(0.75)
    assert lengths[0] == 6
    assert lengths[399] == 12


@pytest.mark.parametrize(("scaling", "factor"), [("none", 1.0), ("sqrt", math.sqrt(2.5)), ("inverse", 2.5)])
def test_scale_of_random_layers_only(scaling: str, factor: float) -> None:
    plan = Raptr(scaling=scaling).plan(12, Progress(0, 0, 0.0, Budget(amount=4)), seed=0)
    assert plan.scale == pytest.approx((1.0, *[factor] * 10, 1.0))


def test_micro_batches_draw_independently_and_repeatably() -> None:
    choice, now = Raptr(), Progress(1, 0, 0.0, Budget(amount=100))
    plans = [choice.plan(12, now, seed=1, micro_step=micro) for micro in range(64)]
    assert plans == [choice.plan(12, now, seed=1, micro_step=micro) for micro in range(64)]
    assert len({plan.runs for plan in plans}) > 32
    assert choice.plan(12, now, seed=2) != plans[0]


def test_telemetry_has_the_share_that_runs() -> None:
    assert Raptr().scheduled_values(Progress(30, 0, 0.0, Budget(amount=100))) == {"path": pytest.approx(2 / 3)}


@pytest.mark.parametrize(
    ("knobs", "why"),
    [
        ({"lengths": (0.5, 1.0)}, r"depth\.shares: 4 shares for 2 path lengths"),
        ({"shares": (1, 1, 0, 1)}, r"depth\.shares: every stage needs a positive length"),
        ({"lengths": (0.5, 0.6, 0.7, 1.5)}, r"depth\.lengths: .*within \(0, 1\]"),
        (
            {"lengths": (0.1, 0.6, 0.7, 1.0)},
            r"depth\.lengths: 0\.1 of 12 layers are fewer than the 2 .*at least 0\.167",
        ),
    ],
)
def test_paths_that_cannot_be(knobs: dict[str, object], why: str) -> None:
    with pytest.raises(RecipeError, match=why):
        Recipe(depth={"kind": "raptr", **knobs}, architecture={"kind": "pre_ln", "layers": 12})
