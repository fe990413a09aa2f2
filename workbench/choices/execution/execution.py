"""What an execution choice is: how the same mathematics is carried out."""

from __future__ import annotations

from typing import ClassVar

from workbench.choices.choice import Choice


class Execution(Choice):
    """Base of the execution engines: device, precision, compilation, memory, telemetry cadence."""

    axis: ClassVar[str] = "execution"
