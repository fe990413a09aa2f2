"""Half a cosine after a linear warm-up."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

from pydantic import model_validator

from workbench.choices.choice import knob
from workbench.choices.schedules.schedule import Schedule


class Cosine(Schedule):
    """Linear warm-up to ``start``, then half a cosine down to ``end``.

    v(x) = end + (start - end) (1 + cos(pi (x - warmup) / (length - warmup))) / 2 (Loshchilov & Hutter 2017).
    """

    levels: ClassVar[tuple[str, ...]] = ("start", "end")
    kind: Literal["cosine"] = "cosine"
    start: float = knob(1.0, "value at the end of the warm-up")
    end: float = knob(0.0, "value from `length` on")
    warmup: float = knob(0.0, "length of the linear warm-up from 0, counted as `over` says", ge=0)
    length: float = knob(1.0, "when `end` is reached, warm-up included, counted as `over` says", gt=0)

    @model_validator(mode="after")
    def _warmup_fits(self) -> Cosine:
        # Equal is refused as well: the cosine would have no length left to fall over (a division by zero).
        if self.warmup >= self.length:
            raise ValueError(f"warmup {self.warmup:g} must be shorter than length {self.length:g}")
        return self

    def value(self, x: float) -> float:
        """v(x) as above; ``x`` counts what ``over`` says: a share of the budget, or steps, tokens or seconds."""
        # Cannot divide by zero: no x lies below a warm-up of 0.
        if x < self.warmup:
            return self.start * x / self.warmup
        done = min(1.0, (x - self.warmup) / (self.length - self.warmup))
        return self.end + (self.start - self.end) * (1 + math.cos(math.pi * done)) / 2

    def extremes(self) -> tuple[float, float]:
        """(lowest, highest) of the two ends, and of 0 where it warms up from there."""
        # A cosine is monotonic between its ends, so nothing in between can lie outside them.
        reached = (self.start, self.end, *((0.0,) if self.warmup else ()))
        return min(reached), max(reached)
