"""What is computed again: the same gradients and masks, and fewer bytes in between."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workbench.ops.recompute import KeptBytes, dropout, recomputed


def kept(function: object, *modules: nn.Module) -> int:
    count = KeptBytes()
    with count.counting(nn.ModuleList(modules), []):
        function()  # type: ignore[operator]
    return count.total


def test_a_recomputed_function_keeps_its_argument_and_draws_the_same() -> None:
    first, second = nn.Linear(8, 64), nn.Linear(64, 8)

    def run(x: Tensor) -> Tensor:
        return second(F.dropout(first(x).exp(), 0.5))

    x = torch.randn(16, 8, requires_grad=True)
    results = []
    for way in (run, lambda x: recomputed(run, x)):
        torch.manual_seed(3)
        out = way(x * 1.0)
        after = torch.rand(())
        results.append((out, after, *torch.autograd.grad(out.square().sum(), [x, *first.parameters()])))
    assert all(map(torch.equal, *results))
    many, few = kept(lambda: run(x * 1.0), first, second), kept(lambda: recomputed(run, x * 1.0), first, second)
    # The argument alone, where the product keeps it as well.
    assert few == x.numel() * 4 < many / 8


def test_without_gradients_nothing_is_kept_or_repeated() -> None:
    calls = []
    with torch.no_grad():
        recomputed(lambda x: calls.append(x) or x, torch.ones(2))
    assert len(calls) == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dropout_without_a_mask_is_dropout(dtype: torch.dtype) -> None:
    x = torch.randn(33, 7, dtype=dtype, requires_grad=True)
    results = []
    for way in (lambda x: F.dropout(x, 0.3), lambda x: dropout(x, 0.3)):
        torch.manual_seed(5)
        out, after = way(x), torch.rand(4)
        torch.rand(100)
        state = torch.get_rng_state()
        (gradient,) = torch.autograd.grad(out.float().square().sum(), x)
        # Drawing the mask again leaves the generator where it was.
        assert torch.equal(torch.get_rng_state(), state)
        results.append((out, after, gradient))
    assert all(map(torch.equal, *results))
    assert kept(lambda: dropout(x, 0.3)) == 0 < kept(lambda: F.dropout(x, 0.3))


def test_every_storage_counts_once_and_parameters_do_not() -> None:
    linear, inner = nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False)
    x = torch.randn(4, 8, requires_grad=True)
    count = KeptBytes()
    with count.counting(nn.ModuleList([linear, inner]), [inner]):
        y = linear(x) + linear(x)
        inner(y)
    assert count.inside == [y.numel() * 4]
    assert count.total == x.numel() * 4 + y.numel() * 4
