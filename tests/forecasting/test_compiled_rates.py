"""Compiled kernels: plausible rates; a compiler is needed, so measuring them takes some seconds."""

from __future__ import annotations

import pytest

from tests.forecasting.conftest import Machine


@pytest.mark.xdist_group("machine")
def test_kernels_are_compiled_and_timed(measured_machine: Machine) -> None:
    found = measured_machine.rates.fused
    assert found is not None
    # A constant of its own every time: never taken from the cache of an earlier calibration.
    assert found.kernel_seconds > 0.1
    assert 0 <= found.graph < 0.1
    assert 0 < found.byte < 1e-7
    assert 0 <= found.costly < 1e-6
