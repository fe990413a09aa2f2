"""Adafactor against its formula in float64, against torch's and transformers', and its memory."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers.optimization import Adafactor as TransformersAdafactor

from tests.choices.optimizers.steps import assert_equals, assert_follows, parameters
from workbench.choices.optimizers.adafactor import Adafactor, AdafactorOptimizer


@pytest.mark.parametrize("beta1", [0.0, 0.9])
@pytest.mark.parametrize("relative", [True, False])
def test_seven_steps_equal_the_formula(relative: bool, beta1: float) -> None:
    def rms(x: Tensor) -> float:
        return float((x**2).mean().sqrt())

    def rule(x: Tensor, g: Tensor, state: dict[str, Any], step: int) -> Tensor:
        b2, square = 1 - step**-0.8, g**2 + 1e-30
        if x.ndim < 2:
            v = state["v"] = b2 * state.get("v", 0.0) + (1 - b2) * square
        else:
            r = state["r"] = b2 * state.get("r", 0.0) + (1 - b2) * square.mean(-1, keepdim=True)
            c = state["c"] = b2 * state.get("c", 0.0) + (1 - b2) * square.mean(-2, keepdim=True)
            v = r * c / r.mean(-2, keepdim=True)
        u = g / v.sqrt()
        u = u / max(1.0, rms(u))
        u = state["m"] = beta1 * state.get("m", 0.0) + (1 - beta1) * u
        scale = max(1e-3, rms(x)) if relative else 1.0
        return x - 0.01 * (scale * u + 0.1 * x)

    held = parameters()
    assert_follows(AdafactorOptimizer(held, lr=0.01, beta1=beta1, relative=relative, weight_decay=0.1), held, rule)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_equals_torch_while_the_rate_is_below_its_cap(decay: float) -> None:
    """torch's is min(lr, 1/sqrt(t)): the same up to step 10,000 at this rate."""
    held, others = parameters(), parameters()
    # torch takes the weights' size after their decay, we take it before.
    theirs = torch.optim.Adafactor(others, lr=0.01, weight_decay=decay, eps=(1e-30, 1e-3))
    ours = AdafactorOptimizer(held, lr=0.01, weight_decay=decay)
    assert_equals(ours, held, theirs, others, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("relative", [True, False])
def test_equals_transformers(relative: bool) -> None:
    held, others = parameters(), parameters()
    theirs = TransformersAdafactor(
        others, lr=0.01, scale_parameter=relative, relative_step=False, beta1=None if relative else 0.9
    )
    ours = AdafactorOptimizer(held, lr=0.01, relative=relative, beta1=0.0 if relative else 0.9)
    assert_equals(ours, held, theirs, others, rtol=1e-4, atol=1e-5)


def test_the_rate_is_the_recipes_at_any_step() -> None:
    """A relative step of the size asked for, long after torch's cap of 1/sqrt(t) would have set in."""
    weight = nn.Parameter(torch.randn(20, 20, generator=torch.Generator().manual_seed(0)))
    optimizer = AdafactorOptimizer([weight], lr=0.5)
    for step in range(30):
        before = weight.detach().clone()
        weight.grad = torch.randn(20, 20, generator=torch.Generator().manual_seed(step))
        optimizer.step()
    moved = float((weight.detach() - before).norm() / before.norm())
    assert 0.35 < moved < 0.65


def test_state_is_rows_plus_columns() -> None:
    weight = nn.Parameter(torch.ones(300, 400))
    optimizer = Adafactor().build([{"params": [weight]}], torch.device("cpu"))
    weight.grad = torch.ones(300, 400)
    optimizer.step()
    assert sum(value.numel() for value in optimizer.state[weight].values()) == 300 + 400 + 1


def test_the_choice_passes_its_knobs_on() -> None:
    choice = Adafactor(lr=0.5, beta1=0.7, decay=0.6, update_clip=2.0, relative_step_size=False)
    group = choice.build([{"params": [nn.Parameter(torch.ones(2))]}], torch.device("cpu")).param_groups[0]
    asked = {"lr": 0.5, "beta1": 0.7, "decay": 0.6, "clip": 2.0, "relative": False}
    assert {name: group[name] for name in asked} == asked
