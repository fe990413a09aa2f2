"""What every optimizer choice shares: groups by what decays, scheduled values written at each step."""

from __future__ import annotations

import pytest
import torch

from tests.ops.test_parameter_groups import net
from workbench.choices.optimizers import AdamW, parameter_groups
from workbench.choices.progress import Budget, Progress
from workbench.choices.schedules import Linear, WarmupHoldDecay


@pytest.mark.parametrize("tensor_rate", [False, True])
def test_apply_writes_rate_and_decay(tensor_rate: bool) -> None:
    choice = AdamW(lr=0.2, schedule=WarmupHoldDecay(warmup=0.5), weight_decay=Linear(start=0.1, end=0.3))
    optimizer = choice.build(parameter_groups(net(), 0.0), torch.device("cpu"))
    if tensor_rate:
        for group in optimizer.param_groups:
            group["lr"] = torch.tensor(0.0)
    held = [group["lr"] for group in optimizer.param_groups]
    now = Progress(25, 0, 0.0, Budget(amount=100))
    said = choice.apply(optimizer, now, choice.lr_at(now))
    assert said == {"lr": pytest.approx(0.1), "weight_decay": pytest.approx(0.15)}
    assert [float(group["lr"]) for group in optimizer.param_groups] == pytest.approx([0.1, 0.1])
    assert [group["weight_decay"] for group in optimizer.param_groups] == pytest.approx([0.15, 0.0])
    if tensor_rate:
        assert all(group["lr"] is same for group, same in zip(optimizer.param_groups, held, strict=True))


def test_groups_with_a_scale_of_their_own_keep_it() -> None:
    choice = AdamW(lr=0.2, schedule=Linear(start=1.0, end=1.0))
    optimizer = choice.build(parameter_groups(net(), 0.0), torch.device("cpu"))
    optimizer.param_groups[1]["lr_scale"] = 0.5
    choice.apply(optimizer, Progress(0, 0, 0.0, Budget()), 0.2)
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.2, 0.1])


def test_negative_rates_and_decays_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must be >= 0 and <= 10 at all times, got -0\.1"):
        AdamW(weight_decay=-0.1)
    with pytest.raises(ValueError, match="schedule reaches -1"):
        AdamW(schedule=Linear(start=1.0, end=-1.0))
