"""What an engine does about memory, as numbers that a forecast reads."""

from __future__ import annotations

from typing import NamedTuple

from workbench.choices.execution.optimizer_states import stored_bytes


class MemoryPlan(NamedTuple):
    """How weights, gradients, states and activations are held; as it stands, all in float32 and kept.

    Attributes:
        states: form of the optimizer's moments between two steps: ``fp32``, ``8bit``, or on the ``host``.
    """

    states: str = "fp32"

    def moment_bytes(self, numbers: int) -> int:
        """Bytes on the device of one moment of a tensor of so many numbers, between two steps."""
        return stored_bytes(self.states, numbers)


WHOLE = MemoryPlan()
"""Nothing is saved: all in float32, and kept."""
