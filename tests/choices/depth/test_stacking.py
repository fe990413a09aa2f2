"""Progressive stacking: depths and boundaries, exact copies, the optimizer's state, silent layers, refusals."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from workbench.base.errors import RecipeError
from workbench.choices.depth.plan import STATES, LayerPlan
from workbench.choices.depth.stacking import Stacking
from workbench.choices.progress import Budget, Progress
from workbench.recipes.recipe import Recipe
from workbench.training.loop import Training

Build = Callable[..., Training]


def at(step: int, steps: int = 400) -> Progress:
    return Progress(step, 0, 0.0, Budget(amount=steps))


def weights(block: nn.Module) -> list[Tensor]:
    return [p.detach().clone() for p in block.parameters()]


def same(one: list[Tensor], other: list[Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_published_stages() -> None:
    plans = [Stacking().plan(12, at(step), seed=0) for step in (0, 49, 50, 119, 120, 399)]
    assert [plan.layers for plan in plans] == [3, 3, 6, 6, 12, 12]
    assert all(all(plan.runs) and all(plan.trains) and plan.total == 12 for plan in plans)
    assert [STATES[code] for code in plans[2].states] == ["running"] * 3 + ["copied"] * 3 + ["absent"] * 6


def test_cost_of_the_published_schedule() -> None:
    layers = [Stacking().plan(12, at(step), seed=0).layers for step in range(400)]
    # methods: relative encoder cost 81.9%
    assert sum(layers) / 400 / 12 == pytest.approx(0.819, abs=0.001)


def test_one_line_of_the_learning_rate_unless_asked() -> None:
    assert all(Stacking().rate_factor(12, at(step)) == 1.0 for step in range(400))
    assert Stacking(rewarm=0.1).rate_factor(12, at(120 + 14)) == pytest.approx(0.5)


@pytest.mark.parametrize("state", ["reset", "copy"])
def test_layers_are_copied_exactly_and_only_once(tiny: Recipe, build: Build, state: str) -> None:
    recipe = tiny.with_(architecture={"layers": 4}, depth={"kind": "stacking", "shares": (1, 1, 2), "state": state})
    training = build(recipe)
    blocks = training.model.backbone.blocks
    for _ in range(5):
        training.step()
    assert training.assembled.layers == 1
    below, fresh = weights(blocks[0]), weights(blocks[1])
    embedding = training.model.backbone.embedding.weight
    moments = training.optimizer.state[embedding]["exp_avg"].clone()
    assert not any(p in training.optimizer.state for block in blocks[1:] for p in block.parameters())
    # The transition alone, without the step that follows it.
    assert training.growth.advance(recipe, training.progress) == (state == "reset")
    training._take_over()
    assert same(weights(blocks[0]), below), "what was there is not touched"
    assert same(weights(blocks[1]), below)
    assert not same(below, fresh)
    kept = training.optimizer.state
    if state == "reset":
        assert not kept
    else:
        assert torch.equal(kept[embedding]["exp_avg"], moments)
        for new, old in zip(blocks[1].parameters(), blocks[0].parameters(), strict=True):
            assert torch.equal(kept[new]["exp_avg_sq"], kept[old]["exp_avg_sq"])
            assert kept[new]["exp_avg_sq"].data_ptr() != kept[old]["exp_avg_sq"].data_ptr()
    assert not training.growth.advance(recipe, training.progress)
    for _ in range(2):
        training.step()
    assert not same(weights(blocks[1]), below), "and the copies go their own way"
    for _ in range(4):
        training.step()
    assert training.assembled.layers == 4


def test_silent_copies_preserve_the_function_bit_for_bit(tiny: Recipe, build: Build) -> None:
    depth = {"kind": "stacking", "shares": (1, 1), "initial": "zero_output"}
    recipe = tiny.with_(architecture={"layers": 4, "dropout": 0.0}, depth=depth)
    training = build(recipe)
    for _ in range(10):
        training.step()
    model, (batch, seen) = training.model, next(training.assembled.heldout.batches(32, 4))
    before = model.heldout(batch, seen, LayerPlan.full(2, 4))
    training.growth.advance(recipe, training.progress)
    after = model.heldout(batch, seen, LayerPlan.full(4))
    assert torch.equal(before, after)
    assert STATES[training.plan().states[2]] == "grown"
    training.step()
    training.step()
    assert all(product.weight.any() for layer in (2, 3) for product in model.backbone.residual_products(layer))


def test_a_plain_copy_does_not_preserve_it(tiny: Recipe, build: Build) -> None:
    """The counterpart: without zeros the doubled model is another function, so the test above can fail."""
    recipe = tiny.with_(architecture={"layers": 4, "dropout": 0.0}, depth={"kind": "stacking", "shares": (1, 1)})
    training = build(recipe)
    for _ in range(10):
        training.step()
    batch, seen = next(training.assembled.heldout.batches(32, 4))
    before = training.model.heldout(batch, seen, LayerPlan.full(2, 4))
    training.growth.advance(recipe, training.progress)
    assert abs(float((before - training.model.heldout(batch, seen, LayerPlan.full(4))).sum())) > 1e-3


@pytest.mark.parametrize(
    ("knobs", "layers", "why"),
    [
        (
            {},
            6,
            r"depth\.shares: 6 layers cannot be halved 2 times for 3 stages; use architecture\.layers 8, or at most 2",
        ),
        ({"shares": (1, 1)}, 7, r"7 layers cannot be halved 1 times .*at most 1 stage"),
        ({"shares": (1, -1)}, 4, r"depth\.shares: every stage needs a positive length"),
    ],
)
def test_depths_that_do_not_halve(knobs: dict[str, object], layers: int, why: str) -> None:
    with pytest.raises(RecipeError, match=why):
        Recipe(depth={"kind": "stacking", **knobs}, architecture={"kind": "pre_ln", "layers": layers})


@pytest.mark.parametrize("depth", ["stacking", "multi_stage"])
def test_silent_layers_are_refused_where_they_are_not_the_identity(depth: str) -> None:
    with pytest.raises(RecipeError, match=r"depth\.initial: 'zero_output' .*post_ln .*use 'copy', or .*'pre_ln'"):
        Recipe(depth={"kind": depth, "initial": "zero_output"}, architecture={"kind": "post_ln", "layers": 4})
