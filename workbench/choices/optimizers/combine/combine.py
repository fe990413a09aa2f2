"""Base of the ways in which a batch's gradients become one step."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from workbench.choices.choice import Choice


class Combine(Choice):
    """Base of the ways in which a batch's gradients become one step.

    Several workers each take the optimizer's step with the gradient of their own rows, and :meth:`pair` makes one
    update of theirs. The number of workers belongs to the mathematics: any number of processes carries them.
    """

    axis: ClassVar[str] = "combine"
    provides: ClassVar[tuple[str, ...]] = ("pair",)

    @property
    def count(self) -> int:
        """Return how many workers there are; 1 takes the step of the whole batch."""
        return 1

    def pair(self, left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
        """Return one update of the parameters, of any shapes, from those of two workers or groups of workers."""
        raise NotImplementedError
