"""AdamW against its formula in float64, and the schedules an optimizer choice writes into groups."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from workbench.choices.optimizers.adamw import AdamW


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_seven_steps_equal_the_formula(weight_decay: float) -> None:
    choice = AdamW(lr=0.01, beta1=0.8, beta2=0.95, eps=1e-7)
    weight = nn.Parameter(torch.randn(13, 7, generator=torch.Generator().manual_seed(0)))
    x = weight.detach().double().clone()
    m, v = torch.zeros_like(x), torch.zeros_like(x)
    optimizer = choice.build([{"params": [weight], "weight_decay": weight_decay}], torch.device("cpu"))
    for t in range(1, 8):
        g = torch.randn(13, 7, generator=torch.Generator().manual_seed(t))
        weight.grad = g.clone()
        optimizer.step()
        m, v = 0.8 * m + 0.2 * g.double(), 0.95 * v + 0.05 * g.double() ** 2
        step = (m / (1 - 0.8**t)) / ((v / (1 - 0.95**t)).sqrt() + 1e-7)
        x = x - 0.01 * (step + weight_decay * x)
        torch.testing.assert_close(weight.detach().double(), x, rtol=1e-5, atol=1e-6)


def test_the_fused_kernel_is_used() -> None:
    optimizer = AdamW().build([{"params": [nn.Parameter(torch.ones(2))]}], torch.device("cpu"))
    assert optimizer.param_groups[0]["fused"] is True
