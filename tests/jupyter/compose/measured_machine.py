"""A machine whose rates are known, or slow to measure, without measuring; and panels that wait for it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tests.forecasting.machine_rates import RATES
from workbench.base.errors import WorkbenchError
from workbench.choices.execution.hardware import Mode
from workbench.forecasting import calibration
from workbench.jupyter.compose.forecast_panel import ForecastPanel


class Machine:
    """Calibration as a forecast meets it: known at once, or measured first, or broken."""

    def __init__(self) -> None:
        self.measured, self.broken = True, ""
        self.asked = 0
        self.measuring, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()

    def calibrated(
        self, mode: Mode, say: Callable[[str], None] | None = None, poll: Callable[[], None] | None = None
    ) -> calibration.Rates:
        self.asked += 1
        if not self.measured:
            assert say is not None
            assert poll is not None
            if self.measuring.is_set() and not self.go_on.is_set():
                poll()
                say("waiting for another process that measures this machine")
            say("measuring this machine, once")
            self.measuring.set()
            if self.broken:
                raise WorkbenchError(self.broken)
            while not self.go_on.wait(0.01):
                poll()
            self.measured = True
        return RATES


def settled(panel: ForecastPanel) -> None:
    assert panel._ahead.wait(60)
    assert panel._beside.wait(60)
