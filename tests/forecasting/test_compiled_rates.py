"""Compiled kernels: plausible rates; a compiler is needed, so this takes some seconds."""

from __future__ import annotations

import pytest
import torch

from workbench.forecasting.compiled_rates import compiled_rates


@pytest.mark.process
def test_kernels_are_compiled_and_timed() -> None:
    found = compiled_rates(torch.device("cpu"), torch.float32)
    # A constant of its own every time: never taken from the cache of an earlier calibration.
    assert found.kernel_seconds > 0.1
    assert 0 <= found.graph < 0.1
    assert 0 < found.byte < 1e-7
    assert 0 <= found.costly < 1e-6
