"""Dropout by a hash of places: the right share, unbiased, without a pattern; torch's own where nothing is compiled."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from workbench.ops.dropout import dropped, hashed_mask

HALF = 1 << 16


def gone(rows: int, columns: int, seed: int, share: float = 0.1) -> Tensor:
    """1 where an element is dropped, float64 (rows, columns)."""
    torch.manual_seed(seed)
    return (~hashed_mask(torch.empty(rows, columns), round(share * HALF))).double()


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_share_is_right_along_rows_and_columns(share: float) -> None:
    mask = gone(1024, 1024, seed=3, share=share)
    deviation = (share * (1 - share) / 1024) ** 0.5
    assert abs(float(mask.mean()) - share) < 5 * deviation / 32 + 1e-5
    for axis in (0, 1):
        spread = float(mask.mean(axis).std()) / deviation
        assert 0.9 < spread < 1.1, "columns and rows scatter as independent draws do"


@pytest.mark.parametrize("apart", [1, 2, 16, 64, 256, 1024, 4096, 65536, 262144])
def test_neighbours_are_independent(apart: int) -> None:
    mask = gone(1024, 1024, seed=7).flatten()
    both = float((mask[apart:] * mask[:-apart]).mean())
    assert abs(both - 0.01) < 5 * (0.01 / len(mask)) ** 0.5


def test_every_call_has_a_mask_of_its_own_and_a_seed_repeats_it() -> None:
    one, same, other = gone(1024, 512, seed=1), gone(1024, 512, seed=1), gone(1024, 512, seed=2)
    assert torch.equal(one, same)
    assert abs(float((one * other).mean()) - 0.01) < 5 * (0.01 / one.numel()) ** 0.5
    torch.manual_seed(1)
    first, second = (hashed_mask(torch.empty(512, 512), 6554) for _ in range(2))
    assert not torch.equal(first, second)


def test_eager_code_takes_torchs_own() -> None:
    x = torch.randn(32, 8)
    torch.manual_seed(5)
    ours = dropped(x, 0.3)
    torch.manual_seed(5)
    assert torch.equal(ours, F.dropout(x, 0.3))


@pytest.mark.extended
def test_compiled_it_keeps_the_mean_and_the_gradient_has_the_same_mask() -> None:
    compiled = torch.compile(lambda x: dropped(x, 0.25) * 1.0)
    x = torch.ones(257, 129, requires_grad=True)
    torch.manual_seed(5)
    y = compiled(x)
    y.sum().backward()
    assert x.grad is not None
    kept = y.detach() != 0
    assert torch.equal(x.grad != 0, kept)
    assert torch.allclose(y.detach()[kept], torch.tensor(4 / 3))
    assert abs(float(y.detach().mean()) - 1) < 5 * (1 / 3 / y.numel()) ** 0.5
    torch.manual_seed(5)
    assert torch.equal(compiled(x).detach(), y.detach()), "a step that is repeated drops the same"
    assert not torch.equal(compiled(x).detach(), y.detach())
