"""Half a cosine after a linear warm-up."""

from __future__ import annotations

import math
from typing import Literal

from workbench.choices.schedules.falling import Falling


class Cosine(Falling):
    """Linear warm-up to ``start``, then half a cosine down to ``end``.

    v(x) = end + (start - end) (1 + cos(pi (x - warmup) / (length - warmup))) / 2 (Loshchilov & Hutter 2017).
    """

    kind: Literal["cosine"] = "cosine"

    def left(self, done: float) -> float:
        """Return (1 + cos(pi d)) / 2 at the share ``done`` of the fall."""
        return (1 + math.cos(math.pi * done)) / 2
