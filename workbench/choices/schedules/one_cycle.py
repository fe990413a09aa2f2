"""One cycle: up, then down below the start."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

from pydantic import model_validator

from workbench.choices.choice import knob
from workbench.choices.schedules.schedule import Schedule


class OneCycle(Schedule):
    """Up from ``start`` to ``peak`` within ``rise``, down to ``end`` at ``length``, along lines or half cosines.

    v(x) = a + (b - a) f on a line from a to b, a + (b - a) (1 - cos(pi f)) / 2 on a half cosine, where f is the share
    of the rise or fall that is done. With lengths of the budget the cycle is fitted to whatever the run may spend: one
    under a budget of seconds ends low when the time is up, however fast the machine is.

    Source: Smith & Topin 2017 (arXiv 1708.07120); fitted to a time budget as in Kaddour et al. 2023 (arXiv 2307.06440).
    """

    levels: ClassVar[tuple[str, ...]] = ("start", "peak", "end")
    kind: Literal["one_cycle"] = "one_cycle"
    start: float = knob(0.04, "value at the beginning")
    peak: float = knob(1.0, "value at the peak")
    end: float = knob(0.0, "value from `length` on")
    rise: float = knob(0.3, "when `peak` is reached, in units of `over`", ge=0)
    length: float = knob(1.0, "when `end` is reached, the rise included, in units of `over`", gt=0)
    shape: Literal["linear", "cosine"] = knob("linear", "how it rises and falls")

    @model_validator(mode="after")
    def _rise_fits(self) -> OneCycle:
        # Equal is refused as well: the fall would have no length left (a division by zero).
        if self.rise >= self.length:
            raise ValueError(f"rise {self.rise:g} must be shorter than length {self.length:g}")
        return self

    def value(self, x: float) -> float:
        """Return v(x) as above; ``x`` counts what ``over`` says: a share of the budget, or steps, tokens or seconds."""
        if x < self.rise:
            return self._between(self.start, self.peak, x / self.rise)
        return self._between(self.peak, self.end, min(1.0, (x - self.rise) / (self.length - self.rise)))

    def _between(self, a: float, b: float, done: float) -> float:
        # b - (b - a) * left rather than a + (b - a) * done: `end` is reached to the last bit.
        return b - (b - a) * ((1 - done) if self.shape == "linear" else (1 + math.cos(math.pi * done)) / 2)

    def extremes(self) -> tuple[float, float]:
        """Return (lowest, highest) of top and end, and of the start where there is a rise."""
        reached = (self.peak, self.end, *((self.start,) if self.rise else ()))
        return min(reached), max(reached)
