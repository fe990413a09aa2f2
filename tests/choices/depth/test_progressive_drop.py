"""Progressive Layer Dropping: the formula at its corners, the statistics of the draws, an unbiased layer."""

from __future__ import annotations

import math

import pytest
import torch

from workbench.base.errors import RecipeError
from workbench.choices.architectures.pre_ln import PreLN
from workbench.choices.data.tokens import Batch, Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.depth.progressive_drop import ProgressiveDrop, expected_layers, keep_probability, theta_at
from workbench.choices.progress import Budget, Progress
from workbench.recipes.recipe import Recipe

DRAWS = 10_000


def late(step: int) -> Progress:
    """Progress where theta has reached its limit."""
    return Progress(step, 0, 0.0, Budget(amount=1))


def test_theta_starts_at_one_and_falls_to_its_limit() -> None:
    assert theta_at(0, 0.5, 0.01) == 1.0
    assert theta_at(1e9, 0.5, 0.01) == 0.5
    assert theta_at(100, 0.6, 0.01) == pytest.approx(0.4 * math.exp(-1) + 0.6)
    values = [theta_at(step, 0.5, 0.01) for step in range(0, 1000, 10)]
    assert values == sorted(values, reverse=True)


def test_keep_probability_falls_linearly_with_depth() -> None:
    assert [keep_probability(layer, 4, 0.5) for layer in (1, 2, 3, 4)] == [0.875, 0.75, 0.625, 0.5]
    assert keep_probability(7, 12, 1.0) == 1.0
    assert sum(keep_probability(layer, 12, 0.5) for layer in range(1, 13)) == pytest.approx(8.75)
    assert expected_layers(12, 0.5) == (3 * 12 - 1) / 4 == 8.75


def test_average_saving_over_the_papers_schedule() -> None:
    steps = 2000
    kept = [expected_layers(12, theta_at(step, 0.5, 100 / steps)) for step in range(steps)]
    assert 1 - sum(kept) / steps / 12 == pytest.approx(0.268, abs=0.001)
    choice = ProgressiveDrop()
    middle = Progress(1000, 0, 0.0, Budget(amount=steps))
    assert choice.theta_now(middle) == pytest.approx(theta_at(1000, 0.5, 100 / steps))


@pytest.mark.parametrize("layers", [4, 12])
def test_kept_depth_over_ten_thousand_draws(layers: int) -> None:
    choice = ProgressiveDrop(theta=0.5)
    kept = torch.tensor([choice.plan(layers, late(step), seed=7).runs for step in range(1, DRAWS + 1)]).double()
    keep = torch.tensor([keep_probability(layer, layers, 0.5) for layer in range(1, layers + 1)], dtype=torch.float64)
    variance = keep * (1 - keep)
    assert abs(float(kept.sum(1).mean()) - (3 * layers - 1) / 4) < 3 * float(variance.sum() / DRAWS) ** 0.5
    assert ((kept.mean(0) - keep).abs() < 4 * (variance / DRAWS).sqrt()).all(), "each layer, the first one included"
    correlation = torch.corrcoef(kept.t()) - torch.eye(layers, dtype=torch.float64)
    assert float(correlation.abs().max()) < 5 / DRAWS**0.5, "layers are dropped independently"


def test_micro_batches_draw_independently_and_repeatably() -> None:
    choice = ProgressiveDrop(theta=0.5)
    plans = [choice.plan(12, late(9), seed=1, micro_step=micro) for micro in range(64)]
    assert plans == [choice.plan(12, late(9), seed=1, micro_step=micro) for micro in range(64)]
    assert len({plan.runs for plan in plans}) > 32
    assert choice.plan(12, late(9), seed=2) != plans[0]


def test_all_layers_run_at_the_first_step() -> None:
    plan = ProgressiveDrop(theta=0.5).plan(12, Progress(0, 0, 0.0, Budget(amount=100)), seed=0)
    assert plan == LayerPlan.full(12)


def test_scale_is_one_over_this_layers_keep_probability() -> None:
    plan = ProgressiveDrop(theta=0.5).plan(4, late(1), seed=0)
    assert plan.keep == (0.875, 0.75, 0.625, 0.5)
    assert plan.scale == pytest.approx([1 / p for p in plan.keep])
    assert ProgressiveDrop(theta=0.5, rescale=False).plan(4, late(1), seed=0).scale == (1.0,) * 4


def test_expected_output_equals_the_full_blocks_output() -> None:
    """E[x + G f(x) / p] = x + f(x): of one frozen layer without inner branching, exactly; here by the two outcomes."""
    torch.manual_seed(0)
    vocabulary = Vocabulary(64, 64, 1, 2, 3, 0, 4)
    backbone = PreLN(layers=1, width=32, heads=2).build(vocabulary, 8, causal=False, attention="plain")
    block = backbone.blocks[0]
    with torch.no_grad():
        # The feed-forward branch reads what attention added; with it silent the layer is one linear residual branch.
        for weight in block.feed_forward.parameters():
            weight.zero_()
        for weight in block.attention.parameters():
            weight.normal_(std=0.3)
    backbone.final = torch.nn.Identity()  # the norm after the last layer is not linear
    tokens = torch.randint(5, 64, (2, 8))
    batch = Batch(tokens, torch.arange(8).expand(2, 8), torch.zeros(2, 8, dtype=torch.int32), torch.arange(2))
    choice, total, outputs = ProgressiveDrop(theta=0.5), None, {}
    with torch.no_grad():
        full = backbone(tokens, batch, LayerPlan.full(1))
        for step in range(1, DRAWS + 1):
            plan = choice.plan(1, late(step), seed=3)
            if plan.runs not in outputs:
                outputs[plan.runs] = backbone(tokens, batch, plan).double()
            total = outputs[plan.runs] if total is None else total + outputs[plan.runs]
        skipped = backbone(tokens, batch, LayerPlan((False,), (1.0,), (True,), (0.5,), 1))
    branch = float((full - skipped).norm())
    assert branch > 0.1, "the layer does something"
    assert total is not None
    # mean of G / p has standard deviation sqrt((1 - p) / p / n) = 0.01 at p = 1/2
    assert float((total / DRAWS - full).norm()) < 3 * 0.01 * branch


def test_theta_is_what_telemetry_plots() -> None:
    progress = Progress(30, 0, 0.0, Budget(amount=1000))
    assert ProgressiveDrop(theta=0.5).scheduled_values(progress) == {"theta": theta_at(0.03, 0.5, 100.0)}


@pytest.mark.parametrize("theta", [0.0, -0.5, 1.5])
def test_theta_out_of_bounds(theta: float) -> None:
    with pytest.raises(RecipeError, match=r"depth\.theta: .*got"):
        Recipe(depth={"kind": "progressive_drop", "theta": theta})


@pytest.mark.parametrize(
    ("layers", "theta", "fits"), [(1, 0.5, False), (2, 0.3, False), (2, 0.34, True), (3, 0.01, True)]
)
def test_more_layers_dropped_than_exist(layers: int, theta: float, fits: bool) -> None:
    fields = {
        "depth": {"kind": "progressive_drop", "theta": theta},
        "architecture": {"kind": "pre_ln", "layers": layers},
    }
    if fits:
        Recipe(**fields)
        return
    with pytest.raises(RecipeError, match=r"depth\.theta: .* drops more layers than exist: .*use theta >= "):
        Recipe(**fields)
