"""The fastest knobs of the native engine for a recipe and a device."""

from __future__ import annotations

from typing import Literal

from workbench.choices.execution.planned import Planned


class Auto(Planned):
    """The native engine with the knobs that a calibration of at most 30 s finds fastest for this recipe and device."""

    kind: Literal["auto"] = "auto"
