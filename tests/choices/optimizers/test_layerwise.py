"""LANS and LAMB: the kernel and torch's operations agree, share one state, and say which takes the steps."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator

import pytest
import torch
from torch import nn

from workbench.choices.optimizers import layerwise
from workbench.choices.optimizers.lamb import LAMB
from workbench.choices.optimizers.lans import LANS
from workbench.choices.optimizers.layerwise import LayerwiseOptimizer, layerwise_kernel, layerwise_path, step_together

CPU = torch.device("cpu")
SHAPES = ([300, 200], [17], [16_384], [110_000], [3, 83, 101])
both = pytest.mark.parametrize("method", [LANS, LAMB])


def parameters() -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    return [nn.Parameter(torch.randn(shape, generator=generator)) for shape in SHAPES]


def walk(optimizer: torch.optim.Optimizer, held: list[nn.Parameter], steps: range) -> None:
    for step in steps:
        generator = torch.Generator().manual_seed(step)
        for parameter in held:
            parameter.grad = torch.randn(parameter.shape, generator=generator)
        optimizer.step()


@pytest.fixture
def kernel() -> None:
    """The fused kernel takes the steps of this test."""
    if layerwise_kernel(CPU) is None:
        pytest.skip(layerwise_path(CPU))


@both
def test_a_run_goes_on_with_the_kernel_and_without_it(method: type[LayerwiseOptimizer], kernel: None) -> None:
    held, other = parameters(), parameters()
    first, second = method(held, lr=0.01), method(other, lr=0.01)  # type: ignore[call-arg]
    second.fused = False
    walk(first, held, range(2))
    walk(second, other, range(2))
    # Now the other way round, from the other's state.
    states = [copy.deepcopy(optimizer.state_dict()) for optimizer in (second, first)]
    first.load_state_dict(states[0])
    second.load_state_dict(states[1])
    walk(first, held, range(2, 4))
    walk(second, other, range(2, 4))
    for one, two in zip(held, other, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-6)
        assert {k: (v.shape, v.dtype) for k, v in first.state[one].items()} == {
            k: (v.shape, v.dtype) for k, v in second.state[two].items()
        }


@both
def test_the_step_of_an_accelerator_equals_that_of_a_cpu(
    method: type[LayerwiseOptimizer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All tensors at once, as there, and one by one: equal to the last bit."""
    monkeypatch.setattr(LayerwiseOptimizer, "fused", False)
    held, other = parameters(), parameters()
    walk(method(held, lr=0.01), held, range(3))  # type: ignore[call-arg]
    at_once = method(other, lr=0.01)  # type: ignore[call-arg]
    gathered: list[tuple[list[object], ...]] = []
    monkeypatch.setattr(layerwise, "step_together", lambda *columns: gathered.append(columns))
    for step in range(3):
        walk(at_once, other, range(step, step + 1))
        normalised = gathered[0][-1]
        for adapts in {columns[3][0].adapts for columns in gathered}:  # type: ignore[attr-defined]
            alike = [columns[:4] for columns in gathered if columns[3][0].adapts == adapts]  # type: ignore[attr-defined]
            with torch.no_grad():
                step_together(*([each for (each,) in column] for column in zip(*alike, strict=True)), normalised)  # type: ignore[arg-type]
        gathered.clear()
    assert all(torch.equal(one, two) for one, two in zip(held, other, strict=True))


def test_a_state_saved_with_a_compiled_step_is_taken() -> None:
    """Versions before had a third implementation and kept in the group that it was asked for."""
    held, other = parameters(), parameters()
    first, second = LANS(held, lr=0.01), LANS(other, lr=0.01)
    walk(first, held, range(1))
    saved = copy.deepcopy(first.state_dict())
    saved["param_groups"][0]["compile"] = True
    other_weights = [parameter.detach().clone() for parameter in held]
    for parameter, weight in zip(other, other_weights, strict=True):
        parameter.data.copy_(weight)
    second.load_state_dict(saved)
    walk(first, held, range(1, 3))
    walk(second, other, range(1, 3))
    assert all(torch.equal(one, two) for one, two in zip(held, other, strict=True))


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package is not installed."""
    layerwise._kernel.cache_clear()
    monkeypatch.setitem(sys.modules, "workbench_kernels", None)
    yield
    layerwise._kernel.cache_clear()


def test_without_the_package_torch_takes_the_step_and_says_why(absent: None) -> None:
    assert layerwise_kernel(CPU) is None
    weight = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
    weight.grad = torch.ones(2)
    optimizer = LANS([weight], lr=0.1, weight_decay=0.0)
    optimizer.step()
    assert float((weight.detach() - torch.tensor([3.0, 4.0])).norm()) == pytest.approx(0.5, rel=1e-4)
    assert optimizer.path.startswith("torch operations: workbench-kernels is not installed")
