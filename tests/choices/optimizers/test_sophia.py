"""Sophia: its formula in float64, pytorch-optimizer's Hutchinson variant fed with our curvature, what it refuses."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import pytorch_optimizer
import torch
from torch import Tensor, nn

from tests.choices.optimizers.steps import assert_follows, gradients, parameters
from workbench.choices.optimizers.sophia import Sophia, SophiaOptimizer
from workbench.recipes.recipe import Recipe

LABELS = 20


def take_in(optimizer: SophiaOptimizer, held: list[nn.Parameter], step: int) -> list[Tensor]:
    """Give the optimizer gradients of sampled labels; returns what h should have taken in, B q^2."""
    sampled = [gradient for gradient in gradients(held, step) if gradient is not None]
    for parameter, gradient in zip(held, sampled, strict=True):
        parameter.grad = gradient
    optimizer.curvature(LABELS)
    return [LABELS * gradient.double() ** 2 for gradient in sampled]


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_seven_steps_after_two_estimates_equal_the_formula(decay: float) -> None:
    held = parameters()
    optimizer = SophiaOptimizer(held, lr=0.01, betas=(0.9, 0.8), gamma=0.05, weight_decay=decay)
    first, second = take_in(optimizer, held, 51), take_in(optimizer, held, 52)
    expected = [0.8 * 0.2 * one + 0.2 * two for one, two in zip(first, second, strict=True)]
    for parameter, h in zip(held, expected, strict=True):
        torch.testing.assert_close(optimizer.state[parameter]["hessian"].double(), h, rtol=1e-5, atol=1e-7)
    curvature = iter(expected)

    def rule(x: Tensor, g: Tensor, state: dict[str, Any], step: int) -> Tensor:
        m = state["m"] = 0.9 * state.get("m", torch.zeros_like(x)) + 0.1 * g
        return x - 0.01 * ((m / (0.05 * state["h"]).clamp(min=1e-12)).clamp(-1, 1) + decay * x)

    curvatures = {tuple(parameter.shape): h for parameter, h in zip(held, curvature, strict=True)}

    def with_curvature(x: Tensor, g: Tensor, state: dict[str, Any], step: int) -> Tensor:
        state.setdefault("h", curvatures[tuple(x.shape)])
        return rule(x, g, state, step)

    assert_follows(optimizer, held, with_curvature)


def test_equals_another_implementation_fed_with_the_same_curvature() -> None:
    held, others = parameters(), parameters()
    ours = SophiaOptimizer(held, lr=0.01, betas=(0.9, 0.8), gamma=1.0, weight_decay=0.1)
    theirs = pytorch_optimizer.SophiaH(others, lr=0.01, betas=(0.9, 0.8), weight_decay=0.1, p=1.0)
    for step in range(6):
        taken = [h.float() for h in take_in(ours, held, 50 + 2 * step + 1)] if step % 3 == 0 else None
        for parameter, other, gradient in zip(held, others, gradients(held, 2 * step + 5), strict=True):
            assert gradient is not None
            parameter.grad, other.grad = gradient.clone(), gradient.clone()
        ours.step()
        if taken is None:
            # It takes an estimate every ten steps of its own accord, the first of which is fed above.
            theirs.step()
        else:
            theirs.step(hessian=taken)
        for mine, other in zip(held, others, strict=True):
            torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-6)


def test_an_estimate_moves_no_weight_and_touches_nothing_without_a_gradient() -> None:
    held = parameters()
    before = [parameter.detach().clone() for parameter in held]
    optimizer = SophiaOptimizer(held, lr=0.1)
    held[0].grad = torch.ones_like(held[0])
    optimizer.curvature(5)
    assert all(torch.equal(old, new) for old, new in zip(before, held, strict=True))
    assert list(optimizer.state) == [held[0]]


def test_the_choice_passes_its_knobs_on() -> None:
    choice = Sophia(lr=0.5, beta1=0.7, beta2=0.8, gamma=0.3, eps=1e-9)
    group = choice.build([{"params": [nn.Parameter(torch.ones(2))]}], torch.device("cpu")).param_groups[0]
    asked = {"lr": 0.5, "betas": (0.7, 0.8), "gamma": 0.3, "eps": 1e-9}
    assert {name: group[name] for name in asked} == asked


def test_only_objectives_that_predict_tokens_are_taken() -> None:
    assert not any(list(Sophia().problems(Recipe(objective=kind))) for kind in ("masked", "causal"))
    (problem,) = Sophia().problems(SimpleNamespace(objective=SimpleNamespace(kind="replaced"), optimizer=Sophia()))
    assert problem.path == "optimizer.kind"
    assert "not of objective 'replaced'" in problem.message
