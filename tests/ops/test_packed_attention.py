"""Attention by documents against plain attention with a bias: outputs, gradients, nothing seen of other documents."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.attention import flex_attention as torch_flex
from torch.nn.attention import varlen as torch_varlen

from workbench.ops.attention import document_bias, plain
from workbench.ops.packed_attention import PACKED, varlen_layout

GPU = pytest.param(
    "cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]
)
# Pieces of one position, of a whole row, and across the borders of flex's blocks of 128.
CUTS = [[160], [1, 128, 31], [60, 99, 1]]


def documents(device: str) -> Tensor:
    rows = [torch.repeat_interleave(torch.arange(len(row)), torch.tensor(row)) for row in CUTS]
    return torch.stack(rows).int().to(device)


def one_piece_at_a_time(
    q: Tensor, k: Tensor, v: Tensor, cuts_q: Tensor, cuts_k: Tensor, most_q: int, most_k: int, *,
    window_size: tuple[int, int],
) -> Tensor:  # fmt: skip
    """Compute in Python what the kernel computes; stands in for it where there is no GPU."""
    assert torch.equal(cuts_q, cuts_k)
    assert cuts_q.dtype == torch.int32
    assert most_q == most_k >= int(cuts_q.diff().max())
    mixed = []
    for begin, end in zip(cuts_q[:-1].tolist(), cuts_q[1:].tolist(), strict=True):
        part = [x[begin:end].transpose(0, 1)[None] for x in (q, k, v)]
        out = torch.nn.functional.scaled_dot_product_attention(*part, is_causal=window_size == (-1, 0))
        mixed.append(out[0].transpose(0, 1))
    return torch.cat(mixed)


@pytest.fixture(autouse=True)
def on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU: torch's own reference of FlexAttention, which it refuses to users, and a loop for varlen."""
    if not torch.cuda.is_available():
        monkeypatch.setattr(torch_flex, "_validate_device", lambda *tensors: None)
        monkeypatch.setattr(torch_varlen, "varlen_attn", one_piece_at_a_time)


@pytest.mark.parametrize("device", ["cpu", GPU])
@pytest.mark.parametrize("mask", ["both sides", "past", "by row"])
@pytest.mark.parametrize("name", sorted(PACKED))
def test_outputs_and_gradients_are_those_of_plain_attention(name: str, mask: str, device: str) -> None:
    torch.manual_seed(0)
    packed, pieces = PACKED[name], documents(device)
    causal = torch.tensor([True, False, True], device=device) if mask == "by row" else mask == "past"
    if mask == "by row" and not packed.by_row:
        pytest.skip("has one mask for a whole batch, and recipes that need another are refused")
    dtype = torch.bfloat16 if device == "cuda" and packed.sixteen_bit else torch.float32
    leaves = [torch.randn(3, 2, 160, 16, device=device, dtype=dtype, requires_grad=True) for _ in range(3)]
    weight = torch.randn(3, 2, 160, 16, device=device, dtype=dtype)
    expected = plain(*leaves, document_bias(pieces, causal, dtype))
    theirs = torch.autograd.grad((expected * weight).sum(), leaves)
    attend = torch.compile(packed.attend) if device == "cuda" and name == "flex" else packed.attend
    found = attend(*leaves, packed.layout(pieces, causal))
    ours = torch.autograd.grad((found * weight).sum(), leaves)
    tolerance = 3e-2 if dtype == torch.bfloat16 else 1e-5
    for a, b in zip((found, *ours), (expected, *theirs), strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def test_pieces_are_cut_where_rows_end() -> None:
    cuts, longest, causal = varlen_layout(documents("cpu"), True)
    assert cuts.tolist() == [0, 160, 161, 289, 320, 380, 479, 480]
    assert (cuts.dtype, longest, causal) == (torch.int32, 160, True)
