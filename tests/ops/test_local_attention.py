"""Windows by mask and by chunks, against one position at a time in float64."""

from __future__ import annotations

import pytest
import torch

from workbench.ops.attention import ATTENTION, document_bias
from workbench.ops.local_attention import banded, chunk_size, in_chunks, window_distances, windowed


def sees(t: int, s: int, window: int, causal: bool) -> bool:
    """Return True where a window lets one see the other, in words of the docstring."""
    return 0 <= t - s < window if causal else abs(t - s) <= window // 2


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("window", [2, 6, 16])
def test_the_mask_lets_the_window_through(window: int, causal: bool) -> None:
    bias = windowed(document_bias(torch.zeros(1, 20), causal, torch.float32), window, causal)[0, 0]
    expected = [[sees(t, s, window, causal) for s in range(20)] for t in range(20)]
    assert (bias == 0).tolist() == expected
    assert window_distances(6, True) == (-5, 0)
    assert window_distances(6, False) == (-3, 3)


@pytest.mark.parametrize("name", sorted(ATTENTION))
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("heads", [1, 2])
def test_chunks_equal_the_mask(name: str, causal: bool, heads: int) -> None:
    """Forward, and the gradients of queries, keys, values and of a bias that has parameters; documents mid-chunk."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 2, 24, 5, requires_grad=True) for _ in range(3))
    extra = torch.randn(2, heads, 24, 24, requires_grad=True)
    documents = torch.tensor([[0] * 7 + [1] * 17, [0] * 24])
    weight = torch.randn(2, 2, 24, 5)
    found = []
    for chunked in (False, True):
        bias = document_bias(documents, causal, torch.float32) + extra
        if chunked:
            out = in_chunks(ATTENTION[name], q, k, v, banded(bias, 4, 6, causal), causal, 0.0)
        else:
            out = ATTENTION[name](q, k, v, windowed(bias, 6, causal), 0.0)
        found.append([out, *torch.autograd.grad((out * weight).sum(), (q, k, v, extra))])
    for masked, chunked in zip(*found, strict=True):
        torch.testing.assert_close(chunked, masked, rtol=1e-4, atol=1e-5)


def test_chunks_are_used_where_they_pay() -> None:
    assert chunk_size(512, 128) == 64
    assert chunk_size(256, 128) == 0
    assert chunk_size(192, 64) == 32
    assert chunk_size(1024, 8) == 32  # smaller products run badly
    assert chunk_size(520, 64) == 40  # a divisor of the row
    assert chunk_size(509, 64) == 0  # a prime has none
