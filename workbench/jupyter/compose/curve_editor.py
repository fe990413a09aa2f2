"""Shows a schedule as a curve; the points of a ``points`` schedule can be dragged. The knobs stay the truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import traitlets
from pydantic import ValidationError

from workbench.choices.choice import registry
from workbench.choices.progress import Budget
from workbench.choices.schedules import Points, Schedule
from workbench.jupyter.bundles import BundledWidget, code, style
from workbench.jupyter.light_widgets import Light
from workbench.plots.shape import KnobScale, shape_picture


class CurveEditor(Light, BundledWidget):
    """The curve of one scheduled knob.

    Args:
        title: of the knob in words, for screen readers.
        write: takes the schedule's fields as JSON has them, whenever points were changed.

    Attributes:
        picture: what the page draws (:func:`workbench.plots.shape.shape_picture`) and ``turn``, the number of the
            last change of the page that is in it; empty before the first schedule.
        stale: the knobs make no schedule at the moment; the last one that was is shown and cannot be moved.
    """

    _code = code("curve_editor")
    _css = style("curve_editor")
    picture = traitlets.Dict().tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)
    stale = traitlets.Bool(False).tag(sync=True)

    def __init__(self, title: str, knob: KnobScale, write: Callable[[dict[str, Any]], None]) -> None:
        super().__init__(title=title)
        self._knob, self._write = knob, write
        self._schedule: Schedule | None = None
        self._turn = 0
        self.on_msg(self._heard)

    def show(self, fields: Mapping[str, Any], budget: Mapping[str, Any] | None = None) -> None:
        """Draw a schedule.

        Args:
            fields: of the schedule, as JSON has them, ``kind`` included; they may be wrong.
            budget: of the run, as JSON has it, where it is known; it may be wrong.
        """
        try:
            # Only what is registered is looked for: a drop-down offers nothing else.
            schedule = registry(Schedule.axis)[fields["kind"]].model_validate(fields)
        except ValidationError:
            # What is wrong stands beside the knobs; the curve waits.
            self.stale = True
            return
        assert isinstance(schedule, Schedule)
        self._schedule, self.stale = schedule, False
        self.picture = {**shape_picture(schedule, self._knob, _spent(budget)), "turn": self._turn}

    def _heard(self, _: Any, message: Any, __: Any) -> None:
        """Take the points as the page has them now."""
        # The shape may have been exchanged by its drop-down while the message was on its way.
        if not isinstance(message, dict) or not isinstance(self._schedule, Points) or self.stale:
            return
        points = {name: message.get(name) for name in ("places", "values")}
        self._turn = message.get("turn", self._turn)
        try:
            changed = Points.model_validate(self._schedule.model_dump() | points)
        except ValidationError:
            changed = self._schedule
        if changed != self._schedule:
            self._write(changed.model_dump(mode="json"))
        # Said even where nothing changed: the page goes by its own points until it hears its turn.
        self.picture = {**self.picture, "turn": self._turn}


def _spent(budget: Mapping[str, Any] | None) -> tuple[float, str] | None:
    if budget is None:
        return None
    try:
        known = Budget.model_validate(budget)
    except ValidationError:
        return None
    return known.amount, known.unit
