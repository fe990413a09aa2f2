"""The fastest knobs of the native engine for a recipe and a device."""

from __future__ import annotations

from typing import Literal

from workbench.choices.execution.autotune import Planned


class Auto(Planned):
    """The native engine with the fastest knobs for this recipe and device, found by a calibration of at most 30 s."""

    kind: Literal["auto"] = "auto"
