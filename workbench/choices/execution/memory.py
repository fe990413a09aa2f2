"""The leanest knobs of the native engine for a recipe and a device."""

from __future__ import annotations

from typing import Literal

from workbench.choices.choice import knob
from workbench.choices.execution.autotune import Planned


class Memory(Planned):
    """The native engine with the lowest peak memory for a given price in time, found by a calibration."""

    kind: Literal["memory"] = "memory"
    price: float = knob(
        0.5, "extra time allowed for saving memory, as a share of a step with the defaults", ge=0.0, le=10.0
    )

    @property
    def most_time(self) -> float:
        """See :attr:`Planned.most_time`."""
        return 1.0 + self.price
