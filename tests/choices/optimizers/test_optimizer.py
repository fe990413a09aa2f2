"""What every optimizer choice shares: groups by what decays, scheduled values written at each step."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from workbench.choices.optimizers import AdamW, parameter_groups
from workbench.choices.progress import Budget, Progress
from workbench.choices.schedules import Linear, WarmupHoldDecay


def net() -> nn.Module:
    made = nn.Module()
    made.embedding = nn.Embedding(4, 3)
    made.norm = nn.LayerNorm(3)
    made.out = nn.Linear(3, 4)
    made.out.weight = made.embedding.weight
    return made


def test_matrices_decay_vectors_do_not_and_tied_tensors_count_once() -> None:
    decays, stays = parameter_groups(net(), 0.1)
    assert decays["names"] == ["embedding.weight"]
    assert stays["names"] == ["norm.weight", "norm.bias", "out.bias"]
    assert (decays["weight_decay"], stays["weight_decay"]) == (0.1, 0.0)


class Conv1D(nn.Module):
    """As GPT-2's: the weight is (inputs, outputs)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(inputs, outputs)), nn.Parameter(torch.zeros(outputs))


def blocked() -> nn.Module:
    """A training model in miniature: two blocks between a table and a head with a matrix of its own."""
    block = nn.ModuleDict(
        {
            "qkv": nn.Linear(4, 12), "out": nn.Linear(4, 4, bias=False), "c_attn": Conv1D(4, 12), "c_fc": Conv1D(4, 8),
            "near": nn.Embedding(5, 2), "norm": nn.LayerNorm(4), "gate": nn.Linear(4, 1), "filter": nn.Conv1d(4, 4, 3),
        }
    )  # fmt: skip
    made = nn.Module()
    made.backbone = nn.Module()
    made.backbone.embedding = nn.Embedding(9, 4)
    made.backbone.blocks = nn.ModuleList([block])
    made.dense = nn.Linear(4, 4)
    made.output = nn.Linear(4, 9, bias=False)
    made.output.weight = made.backbone.embedding.weight
    return made


def test_roles_by_place_and_shape() -> None:
    by = {(g["role"], g["parts"], g["transposed"]): g["names"] for g in parameter_groups(blocked(), 0.1)}
    block = "backbone.blocks.0."
    assert by[("matrix", 1, False)] == [f"{block}out.weight"]
    assert by[("matrix", 1, True)] == [f"{block}c_fc.weight"]
    assert by[("matrix", 3, False)] == [f"{block}qkv.weight"]
    assert by[("matrix", 3, True)] == [f"{block}c_attn.weight"]
    assert by[("embedding", 1, False)] == [
        "backbone.embedding.weight", f"{block}near.weight", f"{block}gate.weight", f"{block}filter.weight",
        "dense.weight",
    ]  # fmt: skip
    vectors = ("qkv.bias", "c_attn.bias", "c_fc.bias", "norm.weight", "norm.bias", "gate.bias", "filter.bias")
    assert by[("vector", 1, False)] == [*(block + name for name in vectors), "dense.bias"]


def test_fewer_heads_for_keys_than_for_queries_stay_one_matrix() -> None:
    model = nn.ModuleDict({"qkv": nn.Linear(4, 8, bias=False)})
    assert [group["parts"] for group in parameter_groups(model, 0.0)] == [1]


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
