"""A staircase: constant pieces."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import model_validator

from workbench.choices.choice import knob
from workbench.choices.schedules.handles import Handle, pull, with_inserted, without
from workbench.choices.schedules.schedule import Schedule

MOST_STAGES = 64
"""As many as an editor adds; the recipe itself sets no limit."""


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
        """The piece at ``x``, which counts what ``over`` says: a share of the budget, or steps, tokens or seconds."""
        # As many boundaries passed, as many stages gone; >= ends a stage exactly at its boundary.
        return self.values[sum(x >= boundary for boundary in self.until)]

    def handles(self) -> tuple[Handle, ...]:
        """The beginning of every stage: its boundary (none for the first) and its level."""
        places, last = (0.0, *self.until), len(self.until)
        return tuple(
            Handle(
                f"stage {i + 1} of {last + 1}",
                (place, self.values[i]),
                pull("until", i - 1, low=places[i - 1], high=places[i + 1] if i < last else None) if i else None,
                pull("values", i),
                removable=last > 0,
            )
            for i, place in enumerate(places)
        )

    def with_point(self, x: float) -> Stages | None:
        """A stage cut in two at ``x``, both halves at its level; None where none can begin."""
        if x <= 0 or len(self.values) >= MOST_STAGES:
            return None
        index = sum(x >= boundary for boundary in self.until)
        values = with_inserted(self.values, index, self.values[index])
        return self.model_copy(update={"until": with_inserted(self.until, index, x), "values": values})

    def without_point(self, handle: int) -> Stages | None:
        """The stages without one, whose place the stage before it takes (the one after it, for the first)."""
        if len(self.values) == 1:
            return None
        until = without(self.until, max(0, handle - 1))
        return self.model_copy(update={"until": until, "values": without(self.values, handle)})
