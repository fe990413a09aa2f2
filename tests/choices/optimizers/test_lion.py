"""Lion against its formula in float64 and against pytorch-optimizer."""

from __future__ import annotations

from typing import Any

import pytest
import pytorch_optimizer
import torch
from torch import Tensor, nn

from tests.choices.optimizers.steps import assert_equals, assert_follows, parameters
from workbench.choices.optimizers.lion import Lion, LionOptimizer


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_seven_steps_equal_the_formula(decay: float) -> None:
    def rule(x: Tensor, g: Tensor, state: dict[str, Any], step: int) -> Tensor:
        m = state.get("m", torch.zeros_like(x))
        direction = torch.sign(0.9 * m + 0.1 * g)
        state["m"] = 0.99 * m + 0.01 * g
        return x - 0.01 * (direction + decay * x)

    held = parameters()
    assert_follows(LionOptimizer(held, lr=0.01, weight_decay=decay), held, rule)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_equals_another_implementation(decay: float) -> None:
    held, others = parameters(), parameters()
    theirs = pytorch_optimizer.Lion(others, lr=0.01, betas=(0.8, 0.9), weight_decay=decay)
    assert_equals(LionOptimizer(held, lr=0.01, betas=(0.8, 0.9), weight_decay=decay), held, theirs, others)


def test_the_choice_passes_its_knobs_on() -> None:
    group = Lion(lr=0.5, beta1=0.7, beta2=0.8).build([{"params": [nn.Parameter(torch.ones(2))]}], torch.device("cpu"))
    assert (group.param_groups[0]["lr"], group.param_groups[0]["betas"]) == (0.5, (0.7, 0.8))
