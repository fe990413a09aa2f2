from __future__ import annotations

import torch

from workbench.choices.architectures.self_attention import BlockContext, SelfAttention, rotary_tables, rotate
from workbench.ops.attention import document_bias


def test_rotation_is_complex_multiplication() -> None:
    cos, sin = rotary_tables(9, 6)
    x = torch.randn(2, 9, 3, 6)
    rate = 10_000.0 ** (-torch.arange(3, dtype=torch.float64) / 3)
    angle = torch.arange(9, dtype=torch.float64)[:, None, None] * rate
    turned = torch.complex(x[..., :3].double(), x[..., 3:].double()) * torch.exp(1j * angle)
    torch.testing.assert_close(
        rotate(x, cos, sin).double(), torch.cat((turned.real, turned.imag), -1), rtol=1e-5, atol=1e-5
    )


def test_rotated_products_depend_on_distance_alone() -> None:
    cos, sin = rotary_tables(64, 8)
    q, k = torch.randn(8).expand(1, 64, 1, 8), torch.randn(8).expand(1, 64, 1, 8)
    products_TS = (rotate(q, cos, sin)[0, :, 0] @ rotate(k, cos, sin)[0, :, 0].T).double()
    for distance in (-7, 0, 3):
        diagonal = products_TS.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), rtol=1e-4, atol=1e-4)


def test_rotation_keeps_precision_and_length() -> None:
    cos, sin = rotary_tables(9, 6)
    x = torch.randn(2, 9, 3, 6)
    assert rotate(x.bfloat16(), cos, sin).dtype == torch.bfloat16
    torch.testing.assert_close(rotate(x, cos, sin).norm(dim=-1), x.norm(dim=-1))


def test_against_one_head_at_a_time() -> None:
    layer, x = SelfAttention(12, 3, True, "plain"), torch.randn(2, 5, 12)
    documents = torch.tensor([[0, 0, 0, 1, 1], [0, 1, 1, 1, 1]])
    context = BlockContext(document_bias(documents, False, torch.float32), None)
    mixed = torch.zeros(2, 5, 12)
    q, k, v = layer.qkv(x).split(12, -1)
    for row in range(2):
        for head in range(3):
            part = slice(4 * head, 4 * head + 4)
            for t in range(5):
                seen = (documents[row] == documents[row, t]).nonzero()[:, 0]
                weights = (k[row, seen, part] @ q[row, t, part] / 2).softmax(0)
                mixed[row, t, part] = weights @ v[row, seen, part]
    torch.testing.assert_close(layer(x, context), layer.out(mixed), rtol=1e-4, atol=1e-5)


def test_probability_dropout_acts_while_training() -> None:
    layer, x = SelfAttention(12, 3, False, "plain", dropout=0.5), torch.randn(2, 5, 12)
    context = BlockContext(document_bias(torch.zeros(2, 5), False, torch.float32), None)
    assert not torch.equal(layer(x, context), layer(x, context))
    layer.eval()
    assert torch.equal(layer(x, context), layer(x, context))
