"""The forecaster is tested with the trainer's tiny recipe and corpus, and on this machine, which is measured once."""

from __future__ import annotations

import pytest

from tests.training.conftest import build, prepared, tiny
from workbench.choices.execution import Mode
from workbench.forecasting import calibration
from workbench.forecasting.rates import Rates

__all__ = ["build", "prepared", "tiny"]


@pytest.fixture(scope="session")
def measured_machine() -> Rates:
    """Measured in a process, once, here or in the kernel of a page; who looks at it belongs to the group "machine"."""
    return calibration.calibrated(Mode("cpu", 1, "fp32", False))
