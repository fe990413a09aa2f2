"""AdaSum against its formula, its limits, and its tree."""

from __future__ import annotations

import math

import pytest
import torch

from workbench.ops.adasum import adasum, adasum_all


def slow(a: list[float], b: list[float]) -> list[float]:
    """The formula in plain Python."""
    dot, of_a, of_b = (math.fsum(x * y for x, y in zip(*pair, strict=True)) for pair in ((a, b), (a, a), (b, b)))
    return [(1 - dot / (2 * of_a)) * x + (1 - dot / (2 * of_b)) * y for x, y in zip(a, b, strict=True)]


def test_it_is_the_formula() -> None:
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(3, 5, generator=generator, dtype=torch.float64) for _ in range(2))
    assert adasum(a, b).flatten().tolist() == pytest.approx(slow(a.flatten().tolist(), b.flatten().tolist()), rel=1e-14)
    assert torch.equal(adasum(a, b), adasum(b, a))


def test_orthogonal_updates_add_and_equal_ones_average() -> None:
    left, right = torch.tensor([[3.0, 0.0], [0.0, 0.0]]), torch.tensor([[0.0, 0.0], [-4.0, 0.0]])
    assert torch.equal(adasum(left, right), left + right)
    assert torch.equal(adasum(left, left), left)
    # Opposed updates cancel, and a zero adds nothing.
    assert torch.allclose(adasum(left, -left), torch.zeros(2, 2))
    assert torch.equal(adasum(left, torch.zeros(2, 2)), left)
    assert torch.equal(adasum(torch.zeros(2, 2), torch.zeros(2, 2)), torch.zeros(2, 2))


def test_dots_are_in_float64() -> None:
    """In bfloat16 the dot of 4,096 equal products stops growing at 256."""
    ones = torch.ones(4096, dtype=torch.bfloat16)
    assert torch.equal(adasum(ones, ones), ones)


def test_lists_go_tensor_by_tensor_and_workers_in_a_tree() -> None:
    generator = torch.Generator().manual_seed(1)
    updates = [[torch.randn(4, generator=generator), torch.randn(2, 2, generator=generator)] for _ in range(4)]
    pairs = [adasum(updates[0], updates[1]), adasum(updates[2], updates[3])]
    for whole, left, right in zip(adasum_all(updates), *pairs, strict=True):
        assert torch.equal(whole, adasum(left, right))


def test_what_it_cannot_combine_is_said() -> None:
    one, two = torch.zeros(2), torch.zeros(3)
    with pytest.raises(ValueError, match=r"not \(2,\) torch.float32 and \(3,\) torch.float32"):
        adasum(one, two)
    with pytest.raises(ValueError, match="not 1 and 2"):
        adasum([one], [one, one])
    with pytest.raises(ValueError, match="not 3; use 2 or 4"):
        adasum_all([[one]] * 3)
