"""A power of what is left."""

from __future__ import annotations

from typing import Literal

from workbench.choices.choice import knob
from workbench.choices.schedules.falling import Falling


class Polynomial(Falling):
    """Linear warm-up to ``start``, then a power of the remaining share, down to ``end``.

    v(x) = end + (start - end) ((length - x) / (length - warmup))^power. Power 1 is a line, 2 falls early, .5 late.

    Source: You et al. 2020 (arXiv 1904.00962), whose large-batch BERT decays with power 1 after a linear warm-up.
    """

    kind: Literal["polynomial"] = "polynomial"
    power: float = knob(2.0, "exponent of the remaining share", gt=0, le=16)

    def left(self, done: float) -> float:
        """Return (1 - d)^power at the share ``done`` of the fall."""
        return (1.0 - done) ** self.power
