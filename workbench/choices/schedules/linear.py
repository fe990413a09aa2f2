"""Straight line."""

from __future__ import annotations

from typing import ClassVar, Literal

from workbench.choices.choice import knob
from workbench.choices.schedules.schedule import Schedule


class Linear(Schedule):
    """A straight line from ``start`` to ``end``, then ``end``: v(x) = start + (end - start) min(1, x / length)."""

    levels: ClassVar[tuple[str, ...]] = ("start", "end")
    kind: Literal["linear"] = "linear"
    start: float = knob(1.0, "value at the beginning")
    end: float = knob(0.0, "value from `length` on")
    length: float = knob(1.0, "when `end` is reached, in units of `over`", gt=0)

    def value(self, x: float) -> float:
        """Return v(x) as above; ``x`` counts what ``over`` says: a share of the budget, or steps, tokens or seconds."""
        # min: a shape counted in steps may be over long before the run is.
        return self.start + (self.end - self.start) * min(1.0, x / self.length)
