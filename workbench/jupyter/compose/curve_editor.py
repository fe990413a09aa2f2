"""A schedule as a curve whose points can be dragged: another view of its knobs, which stay the truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import traitlets
from pydantic import ValidationError

from workbench.choices.choice import registry
from workbench.choices.progress import Budget
from workbench.choices.schedules import Schedule
from workbench.jupyter.bundles import BundledWidget, code, style
from workbench.jupyter.light_widgets import Light
from workbench.plots.shape import KnobScale, shape_picture


class CurveEditor(Light, BundledWidget):
    """The curve of one scheduled knob.

    Args:
        title: of the knob in words, for screen readers.
        write: takes the schedule's fields as JSON has them, whenever a handle was moved.

    Attributes:
        picture: what the page draws (:func:`workbench.plots.shape.shape_picture`); empty before the first schedule.
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
        self.picture = shape_picture(schedule, self._knob, _spent(budget))

    def _heard(self, _: Any, message: Any, __: Any) -> None:
        """A message of the page: a handle was moved, added or removed."""
        if not isinstance(message, dict):
            return
        try:
            changed = self._moved(message)
            if changed is not None and changed != self._schedule:
                self._write(changed.model_dump(mode="json"))
        finally:
            # Always: the page sends its next move only after the answer to this one.
            self.send({"type": "done", "turn": message.get("turn")})

    def _moved(self, message: dict[str, Any]) -> Schedule | None:
        """The schedule that the page asks for; None where a message makes no sense (any more)."""
        schedule, kind = self._schedule, message.get("type")
        handle, x, y = (message.get(name) for name in ("handle", "x", "y"))
        if schedule is None or self.stale:
            return None
        if kind == "add" and isinstance(x, (int, float)):
            return schedule.with_point(float(x))
        # The shape may have been exchanged by its drop-down while the message was on its way.
        if not isinstance(handle, int) or not 0 <= handle < len(schedule.handles()):
            return None
        if kind == "remove":
            return schedule.without_point(handle)
        return schedule.moved(handle, x, y) if kind == "move" else None


def _spent(budget: Mapping[str, Any] | None) -> tuple[float, str] | None:
    if budget is None:
        return None
    try:
        known = Budget.model_validate(budget)
    except ValidationError:
        return None
    return known.amount, known.unit
