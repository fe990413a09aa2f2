"""Linear warm-up, then one over the square root of time."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

from pydantic import model_validator

from workbench.choices.choice import knob
from workbench.choices.schedules.schedule import Schedule


class InverseSqrt(Schedule):
    """Linear warm-up to ``peak``, then peak times sqrt(warmup / x), until ``length``.

    v(x) = peak x / warmup up to ``warmup``, peak sqrt(warmup / min(x, length)) from there. It knows no end: up to
    ``length`` its value is the same however long the run will be.

    Source: Vaswani et al. 2017 (arXiv 1706.03762), section 5.3, with the peak in place of D^-.5 warmup^-.5.
    """

    levels: ClassVar[tuple[str, ...]] = ("peak",)
    kind: Literal["inverse_sqrt"] = "inverse_sqrt"
    peak: float = knob(1.0, "value at the end of the warm-up")
    warmup: float = knob(0.1, "length of the linear warm-up from 0, in units of `over`", gt=0)
    length: float = knob(1.0, "the value stays constant from here on, in units of `over`", gt=0)

    @model_validator(mode="after")
    def _warmup_fits(self) -> InverseSqrt:
        if self.warmup > self.length:
            raise ValueError(f"warmup {self.warmup:g} must not exceed length {self.length:g}")
        return self

    def value(self, x: float) -> float:
        """Return v(x) as above; ``x`` counts what ``over`` says: a share of the budget, or steps, tokens or seconds."""
        if x < self.warmup:
            return self.peak * x / self.warmup
        return self.peak * math.sqrt(self.warmup / min(x, self.length))
