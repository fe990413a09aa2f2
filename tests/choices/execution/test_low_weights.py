"""bf16 copies in place of the weights during passes, and float32 ones for everybody else."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.choices.execution.test_memory_saving import PLANS, VOCABULARY, gradients, recipe_of
from workbench.base.errors import RecipeError
from workbench.choices.data.tokens import Batch
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution.low_weights import LowWeights
from workbench.choices.progress import Progress
from workbench.training.assemble import build_model


def test_copies_stand_in_place_until_they_are_taken_away() -> None:
    model, low = nn.Linear(4, 3), LowWeights()
    master, weight = model.weight.data, model.weight
    low.lower(model)
    assert model.weight is weight
    assert (weight.dtype, model.bias.dtype) == (torch.bfloat16, torch.float32)
    (torch.ones(2, 4, dtype=torch.bfloat16) @ weight.T).sum().backward()
    low.restore()
    assert weight.data_ptr() == master.data_ptr()
    assert weight.grad is not None
    assert weight.grad.dtype == torch.bfloat16
    optimizer = torch.optim.SGD([weight], lr=1.0)
    low.widen()
    low.outdate()
    assert weight.grad.dtype == torch.float32
    before = weight.detach().clone()
    optimizer.step()
    assert not torch.equal(weight, before)
    # What the step changed is rounded anew.
    low.lower(model)
    assert torch.equal(weight, master.bfloat16())
    low.restore()
    low.restore()
    assert weight.data_ptr() == master.data_ptr()


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@pytest.mark.parametrize("architecture", [{"kind": "pre_ln", "positions": "tupe_a"}, {"kind": "post_ln"}])
def test_passes_are_those_of_autocast(architecture: dict[str, object], plan: LayerPlan) -> None:
    """The same rounding of the same weights; what tables look up is rounded beside."""
    whole, _, loss = gradients(recipe_of(architecture), plan)
    low, _, same = gradients(recipe_of(architecture, weights="bf16"), plan)
    assert same == pytest.approx(loss, rel=1e-3)
    for ours, theirs in zip(low, whole, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None and theirs is not None:
            assert ours.dtype == (torch.bfloat16 if ours.ndim >= 2 else torch.float32)
            assert (ours.float() - theirs).norm() <= 0.05 * theirs.norm() + 1e-6


def test_gradients_of_many_micro_batches_add_up() -> None:
    """Of the same rows 512 times: a 512th of a sum is nothing in bf16."""
    recipe = recipe_of({"kind": "pre_ln", "layers": 1}, weights="bf16")
    engine = recipe.engine()
    model = build_model(recipe, recipe.architecture, VOCABULARY, engine)
    tokens_BT = torch.randint(5, 120, (1, 32), generator=torch.Generator().manual_seed(1))
    batch = Batch(tokens_BT, torch.arange(32)[None], torch.zeros_like(tokens_BT).int(), torch.arange(1))
    found = []
    for parts in (1, 512):
        model.zero_grad(set_to_none=True)
        for _ in range(parts):
            loss = engine.forward(model, batch, LayerPlan.full(1), Progress(0, 0, 0.0, recipe.budget))
            counts = {"loss": parts * model.counts(batch, Progress(0, 0, 0.0, recipe.budget))["loss"]}
            engine.backward(loss.over(counts), parts)
        found.append([p.grad for p in model.parameters() if p.grad is not None])
    for once, many in zip(*found, strict=True):
        assert (once.float() - many.float()).norm() <= 0.02 * once.float().norm()
        assert many.dtype == torch.float32


def test_weights_outside_of_passes_are_float32() -> None:
    recipe = recipe_of({"kind": "post_ln"}, weights="bf16")
    model = build_model(recipe, recipe.architecture, VOCABULARY, recipe.engine())
    assert {p.dtype for p in model.parameters()} == {torch.float32}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"weights": "bf16", "precision": "fp32"}, r"execution\.weights: 'bf16' weights meet.*is 'fp32'; use"),
        ({"weights": "fp8"}, r"execution\.weights.*'fp32' or 'bf16'"),
        (
            {"weights": "bf16", "compile": True, "compile_scope": "step"},
            r"execution\.weights: 'bf16' needs execution\.compile_scope 'blocks', and it is 'step'",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(change: dict[str, object], why: str) -> None:
    with pytest.raises(RecipeError, match=why):
        recipe_of({"kind": "pre_ln"}, **change)
