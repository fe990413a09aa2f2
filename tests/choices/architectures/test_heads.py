from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from workbench.choices.architectures.heads import HEADS, LinearHead, TransformHead


@pytest.mark.parametrize("kind", sorted(HEADS))
def test_a_head_is_tied_and_not_saved_twice(kind: str) -> None:
    model = nn.ModuleDict({"embedding": nn.Embedding(40, 8)})
    head = model["head"] = HEADS[kind](model["embedding"])
    assert not any(value.shape == (40, 8) for value in head.state_dict().values())
    head(torch.randn(5, 8)).square().sum().backward()
    assert model["embedding"].weight.grad.abs().sum() > 0
    assert all(parameter.grad is not None for parameter in head.parameters())


@pytest.mark.parametrize("kind", sorted(HEADS))
def test_an_untied_head_is_saved_with_its_matrix_and_leaves_the_embedding_alone(kind: str) -> None:
    embedding, x = nn.Embedding(40, 8), torch.randn(5, 8)
    head = HEADS[kind](embedding, tied=False)
    assert head.state_dict()["matrix"].shape == (40, 8)
    before = head(x)
    with torch.no_grad():
        embedding.weight.add_(1)
    assert torch.equal(head(x), before)
    head(x).square().sum().backward()
    assert embedding.weight.grad is None
    assert all(parameter.grad.any() for parameter in head.parameters())


def test_linear_head_is_the_product_with_the_embedding() -> None:
    embedding, x = nn.Embedding(40, 8), torch.randn(5, 8)
    torch.testing.assert_close(LinearHead(embedding)(x), x @ embedding.weight.T)


def test_transform_head_is_dense_gelu_norm_product_bias() -> None:
    embedding, x = nn.Embedding(40, 8), torch.randn(5, 8)
    head = TransformHead(embedding)
    nn.init.normal_(head.bias)
    hidden = x @ head.dense.weight.T + head.dense.bias
    hidden = hidden * 0.5 * (1 + torch.erf(hidden / 2**0.5))
    expected = F.layer_norm(hidden, (8,), head.norm.weight, head.norm.bias, 1e-12) @ embedding.weight.T + head.bias
    torch.testing.assert_close(head(x), expected)
