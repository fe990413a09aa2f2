"""A staircase: constant pieces."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import model_validator

from workbench.choices.choice import knob
from workbench.choices.schedules.schedule import Schedule


class Stages(Schedule):
    """Constant pieces: ``values[i]`` until ``until[i]``, the last value from then on."""

    levels: ClassVar[tuple[str, ...]] = ("values",)
    kind: Literal["stages"] = "stages"
    values: tuple[float, ...] = knob((1.0, 0.1), "value of each stage", min_length=1)
    until: tuple[float, ...] = knob((0.5,), "where each stage but the last ends, in units of `over`")

    @model_validator(mode="after")
    def _lengths_fit(self) -> Stages:
        if len(self.until) != len(self.values) - 1:
            raise ValueError(
                f"{len(self.values)} values need {len(self.values) - 1} boundaries in `until`, got {len(self.until)}"
            )
        if list(self.until) != sorted(self.until):
            raise ValueError(f"`until` must rise, got {list(self.until)}")
        return self

    def value(self, x: float) -> float:
        """Return the piece at ``x``, which counts what ``over`` says: a share of the budget, or steps,
        tokens or seconds.
        """
        # As many boundaries passed, as many stages gone; >= ends a stage exactly at its boundary.
        return self.values[sum(x >= boundary for boundary in self.until)]
