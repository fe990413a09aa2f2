"""Groups of parameters by what decays, and by the role that an optimizer gives them."""

from __future__ import annotations

import torch
from torch import nn

from workbench.ops.parameter_groups import parameter_groups


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
    model = blocked()
    groups = parameter_groups(model, 0.1, [model.backbone.blocks])
    by = {(g["role"], g["parts"], g["transposed"]): g["names"] for g in groups}
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
