"""Share the rise before a fall without a plateau between all shapes that have it."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import model_validator

from workbench.choices.choice import knob
from workbench.choices.schedules.schedule import Schedule


class Falling(Schedule):
    """Base: a linear warm-up to ``start``, then v(x) = end + (start - end) left(d), d the share of the fall done.

    d = (x - warmup) / (length - warmup). A subclass says what is left at d; it must not rise.
    """

    levels: ClassVar[tuple[str, ...]] = ("start", "end")
    start: float = knob(1.0, "value at the end of the warm-up")
    end: float = knob(0.0, "value from `length` on")
    warmup: float = knob(0.0, "length of the linear warm-up from 0, in units of `over`", ge=0)
    length: float = knob(1.0, "when `end` is reached, warm-up included, in units of `over`", gt=0)

    @model_validator(mode="after")
    def _warmup_fits(self) -> Self:
        # Equal is refused as well: there would be no length left to fall over (a division by zero).
        if self.warmup >= self.length:
            raise ValueError(f"warmup {self.warmup:g} must be shorter than length {self.length:g}")
        return self

    def left(self, done: float) -> float:
        """Return the share left of the way from ``start`` to ``end``: 1 at ``done`` 0, 0 at ``done`` 1."""
        raise NotImplementedError

    def value(self, x: float) -> float:
        """Return v(x) as above; ``x`` counts what ``over`` says: a share of the budget, or steps, tokens or seconds."""
        # Cannot divide by zero: no x lies below a warm-up of 0.
        if x < self.warmup:
            return self.start * x / self.warmup
        done = min(1.0, (x - self.warmup) / (self.length - self.warmup))
        return self.end + (self.start - self.end) * self.left(done)
