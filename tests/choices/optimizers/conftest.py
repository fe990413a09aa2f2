"""The implementations of a layerwise step, each made to carry every tensor of a test."""

from __future__ import annotations

import pytest
import torch

from workbench.choices.optimizers import layerwise
from workbench.choices.optimizers.layerwise import LayerwiseOptimizer
from workbench.ops import kernels


@pytest.fixture(params=["together", "in blocks", pytest.param("compiled", marks=pytest.mark.slow), "kernel"])
def compiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether to ask for the compiled step. What an accelerator runs stands in for every tensor of a CPU here."""
    if request.param == "kernel":
        if kernels.layerwise_step(torch.device("cpu")) is None:
            pytest.skip(kernels.layerwise_path(torch.device("cpu")))
        return False
    monkeypatch.setattr(LayerwiseOptimizer, "fused", False)
    thresholds = {"together": 10**9, "in blocks": 0, "compiled": layerwise.LARGE}
    monkeypatch.setattr(layerwise, "LARGE", thresholds[request.param])
    return bool(request.param == "compiled")
