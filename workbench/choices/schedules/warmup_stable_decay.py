"""Warm up, stay, decay at the very end (WSD), with a choice of how it falls."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

from pydantic import model_validator

from workbench.choices.choice import knob
from workbench.choices.schedules.schedule import Schedule


class WarmupStableDecay(Schedule):
    """Linear warm-up to ``peak``, a long plateau, then a short fall of length ``decay`` to ``end``.

    v(x) = end + (peak - end) g((x - (length - decay)) / decay) while it falls, where g(f) is 1 - f (``linear``),
    1 - sqrt(f) (``one_minus_sqrt``) or (1 + cos(pi f)) / 2 (``cosine``).

    Source: Hu et al. 2024 (arXiv 2404.06395), section 4; Haegele et al. 2024 (arXiv 2405.18392) for 1 - sqrt.
    """

    levels: ClassVar[tuple[str, ...]] = ("peak", "end")
    kind: Literal["warmup_stable_decay"] = "warmup_stable_decay"
    peak: float = knob(1.0, "value on the plateau")
    end: float = knob(0.0, "value from `length` on")
    warmup: float = knob(0.05, "length of the linear warm-up from 0, in units of `over`", ge=0)
    decay: float = knob(0.2, "length of the fall at the end, in units of `over`", ge=0)
    length: float = knob(1.0, "when `end` is reached, all parts included, in units of `over`", gt=0)
    shape: Literal["linear", "one_minus_sqrt", "cosine"] = knob("one_minus_sqrt", "how it falls")

    @model_validator(mode="after")
    def _parts_fit(self) -> WarmupStableDecay:
        # Equal is legal: there is no plateau then. A billionth more is rounding: 0.2 + 0.1 is above 0.3.
        if self.warmup + self.decay > self.length * (1 + 1e-9):
            raise ValueError(f"warmup {self.warmup:g} + decay {self.decay:g} must not exceed length {self.length:g}")
        return self

    def value(self, x: float) -> float:
        """Return v(x) as above; ``x`` counts what ``over`` says: a share of the budget, or steps, tokens or seconds."""
        # Cannot divide by zero: no x lies below a warm-up of 0.
        if x < self.warmup:
            return self.peak * x / self.warmup
        if x >= self.length:
            return self.end
        # The end of the plateau by its own distance from `length`: a decay of 0 divides nothing.
        fallen = (x - (self.length - self.decay)) / self.decay if self.decay else 0.0
        return self.end + (self.peak - self.end) * self._left(max(0.0, fallen))

    def _left(self, fallen: float) -> float:
        if self.shape == "linear":
            return 1 - fallen
        return 1 - math.sqrt(fallen) if self.shape == "one_minus_sqrt" else (1 + math.cos(math.pi * fallen)) / 2
