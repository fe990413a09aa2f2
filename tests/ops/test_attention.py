"""Attention implementations against arithmetic in float64."""

from __future__ import annotations

import pytest
import torch

from workbench.ops.attention import ATTENTION, attention_named, document_bias

CPU = torch.device("cpu")


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, documents: torch.Tensor, causal: bool) -> torch.Tensor:
    """One row, head and position at a time."""
    out = torch.zeros_like(q, dtype=torch.float64)
    for b, h, t in ((b, h, t) for b in range(q.shape[0]) for h in range(q.shape[1]) for t in range(q.shape[2])):
        seen = [s for s in range(k.shape[2]) if documents[b, s] == documents[b, t] and (s <= t or not causal)]
        weights = (k[b, h, seen].double() @ q[b, h, t].double() / q.shape[-1] ** 0.5).softmax(0)
        out[b, h, t] = weights @ v[b, h, seen].double()
    return out


@pytest.mark.parametrize("name", sorted(ATTENTION))
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(2, 3, 7, 5), (1, 1, 1, 8), (3, 2, 17, 16)])
@pytest.mark.parametrize("causal", [False, True])
def test_against_the_slow_reference(
    name: str, dtype: torch.dtype, shape: tuple[int, int, int, int], causal: bool
) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(shape).to(dtype) for _ in range(3))
    documents = torch.randint(0, 2, (shape[0], shape[2])).cumsum(-1)
    out = ATTENTION[name](q, k, v, document_bias(documents, causal, dtype), 0.0)
    assert out.dtype == dtype
    tolerance = 1e-5 if dtype == torch.float32 else 3e-2
    torch.testing.assert_close(out.double(), reference(q, k, v, documents, causal), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", sorted(ATTENTION))
def test_gradients_against_float64(name: str) -> None:
    torch.manual_seed(0)
    leaves = [torch.randn(2, 2, 9, 4, requires_grad=True) for _ in range(3)]
    exact = [leaf.detach().double().requires_grad_() for leaf in leaves]
    documents, weight = torch.tensor([[0] * 4 + [1] * 5] * 2), torch.randn(2, 2, 9, 4)
    bias = document_bias(documents, True, torch.float32)
    (ATTENTION[name](*leaves, bias, 0.0) * weight).sum().backward()
    logits = exact[0] @ exact[1].transpose(-2, -1) / 2 + bias.double()
    ((logits.softmax(-1) @ exact[2]) * weight).sum().backward()
    for leaf, expected in zip(leaves, exact, strict=True):
        torch.testing.assert_close(leaf.grad.double(), expected.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", sorted(ATTENTION))
def test_dropout_keeps_the_mean(name: str) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 1, 16, 4).expand(2000, 1, 16, 4) for _ in range(3))
    bias = document_bias(torch.zeros(2000, 16), False, torch.float32)
    full, dropped = (ATTENTION[name](q, k, v, bias, p) for p in (0.0, 0.5))
    assert not torch.equal(full, dropped)
    torch.testing.assert_close(dropped.mean(0), full[0], rtol=0, atol=0.06)


def test_an_unknown_name_names_the_legal_ones() -> None:
    with pytest.raises(ValueError, match=r"execution.attention: unknown value 'flash'; legal: plain, sdpa"):
        attention_named("flash")


def test_rows_of_a_batch_have_masks_of_their_own() -> None:
    documents, causal = torch.tensor([[0, 0, 0, 1, 1]] * 3), torch.tensor([True, False, True])
    rows = [document_bias(documents[:1], bool(past), torch.float32) for past in causal]
    assert torch.equal(document_bias(documents, causal, torch.float32), torch.cat(rows))
