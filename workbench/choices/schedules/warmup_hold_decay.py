"""Warm up, hold, decay: the schedule published with LANS, and (hold 0) BERT's own."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import model_validator

from workbench.choices.choice import knob
from workbench.choices.schedules.schedule import Schedule


class WarmupHoldDecay(Schedule):
    """Linear warm-up to ``peak``, a plateau of length ``hold``, then a straight line to ``end``.

    Zheng et al. 2020 (arXiv 2006.13484), section 3.3. ``hold=0`` is BERT's warm-up and linear decay.
    """

    levels: ClassVar[tuple[str, ...]] = ("peak", "end")
    kind: Literal["warmup_hold_decay"] = "warmup_hold_decay"
    peak: float = knob(1.0, "value on the plateau")
    end: float = knob(0.0, "value from `length` on")
    warmup: float = knob(0.1, "length of the linear warm-up from 0, in units of `over`", ge=0)
    hold: float = knob(0.0, "length of the plateau, in units of `over`", ge=0)
    length: float = knob(1.0, "when `end` is reached, warm-up and plateau included, in units of `over`", gt=0)

    @model_validator(mode="after")
    def _parts_fit(self) -> WarmupHoldDecay:
        # Equal is legal, unlike in a cosine: there is no decay then, and the value drops once `length` is passed.
        # A billionth more is rounding: 0.2 + 0.1 is above 0.3.
        if self.warmup + self.hold > self.length * (1 + 1e-9):
            raise ValueError(f"warmup {self.warmup:g} + hold {self.hold:g} must not exceed length {self.length:g}")
        return self

    def value(self, x: float) -> float:
        """Return v(x) as above; ``x`` counts what ``over`` says: a share of the budget, or steps, tokens or seconds."""
        if x < self.warmup:
            return self.peak * x / self.warmup
        decay_start = self.warmup + self.hold
        if x <= decay_start:
            return self.peak
        left = max(0.0, (self.length - x) / (self.length - decay_start)) if decay_start < self.length else 0.0
        return self.end + (self.peak - self.end) * left
