"""Which step is taken, and what is said about it, with the package of kernels and without."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
import torch

from workbench.choices.optimizers.lans import LANS
from workbench.ops import kernels

CPU = torch.device("cpu")


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package is not installed."""
    kernels._found.cache_clear()
    monkeypatch.setitem(sys.modules, "workbench_kernels", None)
    yield
    kernels._found.cache_clear()


def test_without_the_package_torch_takes_the_step_and_says_why(absent: None) -> None:
    assert kernels.layerwise_step(CPU) is None
    weight = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
    weight.grad = torch.ones(2)
    optimizer = LANS([weight], lr=0.1, weight_decay=0.0)
    optimizer.step()
    assert float((weight.detach() - torch.tensor([3.0, 4.0])).norm()) == pytest.approx(0.5, rel=1e-4)
    assert optimizer.path.startswith("torch operations: workbench-kernels is not installed")


def test_a_device_without_kernels_is_named() -> None:
    if kernels.layerwise_step(CPU) is None:
        pytest.skip(kernels.layerwise_path(CPU))
    assert kernels.layerwise_path(CPU).startswith("fused kernel of workbench-kernels ")
    assert "there are kernels for cpu and cuda, not for meta" in kernels.layerwise_path(torch.device("meta"))
