"""Both implementations of a layerwise step."""

from __future__ import annotations

import pytest
import torch

from workbench.choices.optimizers.layerwise import LayerwiseOptimizer, layerwise_kernel, layerwise_path


@pytest.fixture(params=["torch", "kernel"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch's operations or the fused kernel take the steps."""
    if request.param == "torch":
        monkeypatch.setattr(LayerwiseOptimizer, "fused", False)
    elif layerwise_kernel(torch.device("cpu")) is None:
        pytest.skip(layerwise_path(torch.device("cpu")))
