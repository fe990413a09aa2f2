"""Hold what an engine does about memory, as numbers that a forecast reads."""

from __future__ import annotations

from typing import NamedTuple

from workbench.choices.execution.optimizer_states import stored_bytes

OPERATIONS = frozenset({"attention", "activation", "dropout"})
"""Parts that can be computed again alone: probabilities from queries, keys and values; activations from the product
before them; dropout of residual branches from the generator's state."""


class MemoryPlan(NamedTuple):
    """Say how weights, gradients, states and activations are held; by default, all in float32 and kept.

    Attributes:
        recompute: what the backward pass computes again: ``off``, whole ``layers``, ``attention``, ``activation``,
            ``dropout``, these three ``operations``, or as many layers as a ``budget`` asks for.
        every: with ``layers``, one layer in so many, the first included.
        states: form of the optimizer's moments between two steps: ``fp32``, ``8bit``, or on the ``host``.
        budget: bytes that weights, gradients, states and activations may take together; 0 for what is free.
        first: under a budget, how many layers are computed again, from the first on.
        largest: micro-batches are as large as fits.
        weights: of the passes: ``fp32``, or ``bf16`` copies beside the float32 ones.
    """

    recompute: str = "off"
    every: int = 1
    states: str = "fp32"
    weights: str = "fp32"
    budget: int = 0
    first: int = 0
    largest: bool = False

    def recomputes(self, layer: int) -> bool:
        """Return True if a layer, counted from 0, keeps its input only."""
        return layer < self.first or (self.recompute == "layers" and layer % self.every == 0)

    @property
    def operations(self) -> frozenset[str]:
        """Operations that are computed again in every layer."""
        if self.recompute == "operations":
            return OPERATIONS
        return OPERATIONS & {self.recompute}

    def moment_bytes(self, numbers: int) -> int:
        """Return bytes on the device of one moment of a tensor of so many numbers, between two steps."""
        return stored_bytes(self.states, numbers)


WHOLE = MemoryPlan()
"""Nothing is saved: all in float32, and kept."""
