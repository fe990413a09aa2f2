"""A free curve: straight lines between points."""

from __future__ import annotations

from bisect import bisect_right
from typing import ClassVar, Literal

from pydantic import model_validator

from workbench.choices.choice import knob
from workbench.choices.schedules.schedule import Schedule


class Points(Schedule):
    """Straight lines from point to point; the first value before them, the last value after them.

    v(x) = y_i + (y_(i+1) - y_i) (x - x_i) / (x_(i+1) - x_i) for x_i <= x < x_(i+1), where x are ``places`` and y
    ``values``. Two points at one place are a jump: the second one's value holds there.

    Example:
        >>> shape = Points(places=(0.0, 0.2, 1.0), values=(0.0, 1.0, 0.5))
        >>> [round(shape.value(x), 3) for x in (0.0, 0.1, 0.2, 0.6, 1.0)]
        [0.0, 0.5, 1.0, 0.75, 0.5]
    """

    levels: ClassVar[tuple[str, ...]] = ("values",)
    kind: Literal["points"] = "points"
    places: tuple[float, ...] = knob(
        (0.0, 0.1, 0.5, 1.0), "where each point lies, in units of `over`", min_length=1, max_length=64
    )
    values: tuple[float, ...] = knob((0.1, 1.0, 0.5, 0.1), "value at each point", min_length=1)

    @model_validator(mode="after")
    def _points_fit(self) -> Points:
        if len(self.places) != len(self.values):
            raise ValueError(f"{len(self.places)} places need {len(self.places)} `values`, got {len(self.values)}")
        if list(self.places) != sorted(self.places) or self.places[0] < 0:
            raise ValueError(f"`places` must rise from 0 or more, got {list(self.places)}")
        return self

    def value(self, x: float) -> float:
        """Return v(x) as above; ``x`` counts what ``over`` says: a share of the budget, or steps, tokens or seconds."""
        # To the right of equal places: a jump has happened once its place is reached.
        after = bisect_right(self.places, x)
        if after in (0, len(self.places)):
            return self.values[0 if after == 0 else -1]
        (begin, end), (y_begin, y_end) = self.places[after - 1 : after + 1], self.values[after - 1 : after + 1]
        # No division by zero: begin <= x < end.
        return y_begin + (y_end - y_begin) * (x - begin) / (end - begin)
