"""Positions: every table, rotation and bias against arithmetic in float64 or another implementation."""

from __future__ import annotations

import math

import pytest
import torch

from tests.choices.architectures.packing import VOCABULARY, documents, pack
from workbench.choices.architectures.modular import Modular
from workbench.choices.architectures.positions import (
    Tupe,
    alibi_slopes,
    relative_buckets,
    rotary_tables,
    rotate,
    sinusoids,
    toeplitz,
)
from workbench.choices.architectures.post_ln import PostLN
from workbench.choices.architectures.pre_ln import PreLN
from workbench.choices.data.tokens import Batch
from workbench.ops.attention import attention_probabilities


def test_rotation_is_complex_multiplication() -> None:
    cos, sin = rotary_tables(9, 6)
    x = torch.randn(2, 9, 3, 6)
    rate = 10_000.0 ** (-torch.arange(3, dtype=torch.float64) / 3)
    angle = torch.arange(9, dtype=torch.float64)[:, None, None] * rate
    turned = torch.complex(x[..., :3].double(), x[..., 3:].double()) * torch.exp(1j * angle)
    torch.testing.assert_close(
        rotate(x, cos, sin).double(), torch.cat((turned.real, turned.imag), -1), rtol=1e-5, atol=1e-5
    )


def test_rotation_keeps_precision_and_length() -> None:
    cos, sin = rotary_tables(9, 6)
    x = torch.randn(2, 9, 3, 6)
    assert rotate(x.bfloat16(), cos, sin).dtype == torch.bfloat16
    torch.testing.assert_close(rotate(x, cos, sin).norm(dim=-1), x.norm(dim=-1))


def test_sinusoids_number_by_number() -> None:
    table = sinusoids(40, 6)
    for t in range(40):
        for i in range(3):
            angle = t / 10_000 ** (2 * i / 6)
            assert table[t, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[t, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)
    assert sinusoids(5, 7).shape == (5, 7)


@pytest.mark.parametrize("heads", [1, 2, 3, 4, 6, 8, 12, 16, 20])
def test_alibi_slopes_are_those_of_transformers(heads: int) -> None:
    bloom = pytest.importorskip("transformers.models.bloom.modeling_bloom", reason="transformers is not installed")
    theirs = bloom.build_alibi_tensor(torch.ones(1, 2), heads, torch.float32)[:, 0, 1]
    torch.testing.assert_close(alibi_slopes(heads), theirs)


@pytest.mark.parametrize("causal", [False, True])
def test_buckets_are_those_of_transformers(causal: bool) -> None:
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5", reason="transformers is not installed")
    distance = torch.arange(-300, 1 if causal else 301)
    theirs = t5.T5Attention._relative_position_bucket(distance, not causal, 32, 128)
    assert torch.equal(relative_buckets(distance, causal), theirs)


def test_toeplitz_puts_each_distance_on_its_diagonal() -> None:
    values = torch.randn(9, 2, requires_grad=True)
    square = toeplitz(values)
    for h in range(2):
        for t in range(5):
            assert square[h, t].tolist() == [values[s - t + 4, h].item() for s in range(5)]
    square.sum().backward()
    assert values.grad[:, 0].tolist() == [1, 2, 3, 4, 5, 4, 3, 2, 1]


def tupe(relative: bool, causal: bool = False) -> Tupe:
    torch.manual_seed(3)
    part = Tupe(width=12, heads=3, length=16, relative=relative, causal=causal)
    with torch.no_grad():
        for parameter in part.parameters():
            parameter.normal_()
    return part


def slow_tupe(part: Tupe, positions: torch.Tensor, cls: torch.Tensor, causal: bool) -> torch.Tensor:
    """v_ij = (p_i Uq)(p_j Uk)^T / sqrt(2 E) [+ b of the bucket], then the reset; pair by pair in float64."""
    heads, head_dim = 3, 4
    table = part.table.weight.double()
    p = (table - table.mean(-1, keepdim=True)) / (table.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
    p = p * part.norm.weight.double() + part.norm.bias.double()
    q, k = (p @ product.weight.double().T for product in (part.query, part.key))
    rows, length = positions.shape
    out = torch.zeros(rows, heads, length, length, dtype=torch.float64)
    for b in range(rows):
        for h in range(heads):
            part_h = slice(head_dim * h, head_dim * (h + 1))
            for i in range(length):
                for j in range(length):
                    value = q[positions[b, i], part_h] @ k[positions[b, j], part_h] / math.sqrt(2 * head_dim)
                    if part.relative is not None:
                        value = value + part.relative.weight[relative_buckets(torch.tensor(j - i), causal), h]
                    if cls[b, j]:
                        value = part.to_cls[h]
                    if cls[b, i] and part.from_cls is not None:
                        value = part.from_cls[h]
                    out[b, h, i, j] = value
    return out


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_tupe_pair_by_pair(relative: bool, causal: bool) -> None:
    """The second row begins with a piece that continues a document: no [CLS] there, and nothing is reset in it."""
    part = tupe(relative, causal)
    positions = torch.tensor([[0, 1, 2, 3, 4, 0, 1, 2, 3], [0, 1, 2, 0, 1, 2, 3, 4, 5]])
    cls = torch.zeros(2, 9, dtype=torch.bool)
    cls[0, 0] = cls[0, 5] = cls[1, 3] = True
    bias = part(positions, cls)
    assert bias.shape == (2, 3, 9, 9)
    torch.testing.assert_close(bias.double(), slow_tupe(part, positions, cls, causal), rtol=1e-4, atol=1e-4)


def stack_of(positions: str, kind: type[Modular] = PreLN, causal: bool = False):  # type: ignore[no-untyped-def]
    torch.manual_seed(0)
    choice = kind(layers=1, width=16, heads=2, positions=positions, dropout=0)
    stack = choice.build(VOCABULARY, 24, causal=causal, attention="plain")
    with torch.no_grad():
        for parameter in stack.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return stack.double()


def slow_logits(stack, batch: Batch, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:  # type: ignore[no-untyped-def]
    """Logits of one row from queries and keys before positions, (H, T, E), by each method's formula."""
    kind, length, head_dim = stack.choice.positions, q.shape[1], q.shape[2]
    if kind == "rope":
        half = head_dim // 2
        rate = 10_000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
        turn = torch.exp(1j * torch.arange(length, dtype=torch.float64)[:, None] * rate)
        q, k = (torch.complex(x[..., :half], x[..., half:]) * turn for x in (q, k))
        return (q @ k.conj().transpose(-1, -2)).real / head_dim**0.5
    logits = q @ k.transpose(-1, -2) / head_dim**0.5
    if kind == "alibi":
        away = (torch.arange(length)[None] - torch.arange(length)[:, None]).abs()
        return logits - torch.tensor([2**-4, 2**-8], dtype=torch.float64)[:, None, None] * away
    if kind in ("tupe_a", "tupe_r"):
        cls = batch.tokens_BT == VOCABULARY.cls
        return logits / 2**0.5 + stack.position_bias(batch.positions_BT, cls)[0]
    return logits


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "rope", "alibi", "tupe_a", "tupe_r", "none"])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_of_a_layer_against_its_formula_in_float64(positions: str, causal: bool) -> None:
    stack, batch = stack_of(positions, causal=causal), pack(documents(9, 8))
    attention, context = stack.blocks[0].attention, stack.context(batch.tokens_BT, batch)
    x = stack.blocks[0].attention_norm(stack.embed(batch.tokens_BT, batch)).double()
    q, k, _ = (part.unflatten(-1, (2, 8)).transpose(0, 1) for part in attention.qkv(x)[0].chunk(3, -1))
    place, piece = torch.arange(17), batch.documents_BT[0]
    sees = (piece[:, None] == piece[None]) & ((place[None] <= place[:, None]) if causal else True)
    expected = slow_logits(stack, batch, q, k).masked_fill(~sees, -math.inf).softmax(-1)
    ours = attention.project(x, context)[:2]
    # The mask and the tables are fp32 whatever the model is.
    found = attention_probabilities(*ours, context.bias_BHTT)[0].double()
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [PreLN, PostLN])
def test_what_the_first_layer_is_given(kind: type[Modular]) -> None:
    """Learned and sinusoidal positions are added and restart with every piece; all others leave the input alone."""
    piece = documents(6)[0]
    batch = pack([piece, piece])
    for positions in ("learned", "sinusoidal", "rope", "alibi", "tupe_a", "tupe_r", "none"):
        stack = stack_of(positions, kind)
        x = stack.embedding(batch.tokens_BT)
        if positions == "learned":
            x = x + stack.positions.weight[batch.positions_BT]
        if positions == "sinusoidal":
            x = x * 4 + sinusoids(24, 16)[batch.positions_BT]
        x = x if stack.token_types is None else x + stack.token_types.weight[0]
        x = stack.embedding_norm(x)
        torch.testing.assert_close(stack.embed(batch.tokens_BT, batch), x)
        assert torch.equal(x[0, :6], x[0, 6:])
