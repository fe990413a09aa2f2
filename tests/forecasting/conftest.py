"""The forecaster is tested with the trainer's tiny recipe and corpus, and on this machine, which is measured once."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.training.conftest import _one_thread, build, prepared, tiny
from workbench.choices.execution import Mode
from workbench.forecasting import calibration
from workbench.forecasting.rates import Rates

__all__ = ["_one_thread", "build", "prepared", "tiny"]


class Machine(NamedTuple):
    """Rates of this machine with compiled code, and what the processes that measured them have answered, by what
    they were asked for: whether with compiled code, and which part."""

    rates: Rates
    answers: dict[tuple[bool | str, ...], str]


@pytest.fixture(scope="session")
def measured_machine() -> Machine:
    """Measured in processes, once; who looks at it belongs to the group "machine"."""
    child, answers = calibration._run_child, {}

    def kept(mode: Mode, *part: str) -> str:
        answers[(mode.compiled, *part)] = child(mode, *part)
        return answers[(mode.compiled, *part)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibration, "_run_child", kept)
        return Machine(calibration.measured(Mode("cpu", 1, "fp32", True)), answers)
