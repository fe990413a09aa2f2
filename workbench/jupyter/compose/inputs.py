"""One control per plain field type: what a knob's annotation, bounds and scale ask for, and nothing about choices.

Numbers are text boxes: they take ``6.75e-3`` and ``30_000``, and a value that cannot stand is never clamped but
handed on as typed, so that the recipe's own check says why. A bounded number gets a slider beside the box.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import ipywidgets
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python

from workbench.base.assignments import plain_minus
from workbench.choices.choice import Choice
from workbench.choices.knob import bounds_of
from workbench.jupyter.light_widgets import light

SLIDER_DECADES = 3
"""Decades that a logarithmic slider reaches around the default where no bound stops it."""
SLIDER_REACH = 4
"""Reach of a linear slider as a multiple of the default, where the range is no share."""
SLIDER_STEPS = 100


@dataclass(frozen=True)
class Shape:
    """A field's annotation, taken apart.

    Attributes:
        kind: ``bool``, ``int``, ``float``, ``str``, ``literal``, ``list`` or ``choice``.
        optional: None is legal.
        item: kind of the entries of a ``list``.
        options: legal values of a ``literal``.
        axis: where the choices of a ``choice`` are registered.
        plain: shape of the number that may stand in place of a choice (a scheduled knob).
        low, high: bounds, whether or not they themselves are legal.
    """

    kind: str
    optional: bool = False
    item: str = ""
    options: tuple[Any, ...] = ()
    axis: str = ""
    plain: Shape | None = None
    low: float | None = None
    high: float | None = None


def shape_of(info: FieldInfo) -> Shape:
    """Take a pydantic field apart.

    Raises:
        TypeError: the annotation is one that no control exists for.
    """
    low: float | None = None
    high: float | None = None
    for word, bound in bounds_of(info).items():
        low, high = (bound, high) if "inimum" in word else (low, bound)
    return _shape(info.annotation, low, high)


def _shape(annotation: Any, low: float | None = None, high: float | None = None) -> Shape:
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    origin, args = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        arms = [arm for arm in args if arm is not type(None)]
        shapes = [_shape(arm, low, high) for arm in arms]
        chosen = next((shape for shape in shapes if shape.kind == "choice"), shapes[0])
        plain = next((shape for shape in shapes if shape.kind != "choice"), None)
        changes = {"optional": len(arms) < len(args)}
        return Shape(**{**vars(chosen), **changes, "plain": plain if chosen.kind == "choice" else None})
    if origin is Literal:
        return Shape("literal", options=args)
    if origin in (tuple, list):
        return Shape("list", item=_shape(args[0]).kind)
    if isinstance(annotation, type) and issubclass(annotation, Choice):
        return Shape("choice", axis=annotation.axis)
    for kind in (bool, int, float, str):
        if annotation is kind:
            return Shape(kind.__name__, low=low, high=high)
    raise TypeError(f"no control for a field of type {annotation!r}; {__name__} knows the types that knobs may have")


@dataclass
class Input:
    """A control and the way between its text and a JSON value.

    Attributes:
        source: the part of it that holds the value.
        read: what the source holds -> JSON value (as typed, where it cannot be read).
        write: JSON value -> what the source holds.
    """

    widget: ipywidgets.Widget
    source: Any
    read: Callable[[Any], Any]
    write: Callable[[Any], Any]
    changed: Callable[[], None] = field(default=lambda: None)

    def __post_init__(self) -> None:
        self._quiet = False
        self.source.observe(self._heard, names="value")

    def get(self) -> Any:
        """Return the value as JSON has it."""
        return self.read(self.source.value)

    def set(self, value: Any) -> None:
        """Show ``value`` without calling ``changed``."""
        self._quiet = True
        try:
            self.source.value = self.write(value)
        finally:
            self._quiet = False

    def _heard(self, _change: Any) -> None:
        if not self._quiet:
            self.changed()


def defaults(model: type[BaseModel]) -> dict[str, Any]:
    """Return every field's default as JSON has it; a required field starts empty, and the recipe's check says so."""
    values: dict[str, Any] = {}
    for name, info in model.model_fields.items():
        default = info.get_default(call_default_factory=True, validated_data={})
        if default is PydanticUndefined:
            default = [] if shape_of(info).kind == "list" else ""
        values[name] = (
            default.model_dump(mode="json") if isinstance(default, BaseModel) else to_jsonable_python(default)
        )
    return values


def make_input(shape: Shape, label: str, tooltip: str, default: Any, scale: str) -> Input:
    """Return the control for one plain field.

    Args:
        shape: of the field; not a choice.
        label: shown before the control; HTML (a unit in small print).
        default: of the field; decides how far a logarithmic slider reaches.
        scale: ``linear`` or ``log``.
    """
    common = {"description": label, "description_allow_html": True, "tooltip": tooltip}
    if shape.kind == "bool" and not shape.optional:
        box = light(ipywidgets.Checkbox, indent=False, **common)
        return Input(box, box, bool, bool)
    if shape.kind in ("literal", "bool"):
        options = shape.options or (True, False)
        named = [("none", None)] if shape.optional else []
        pick = light(ipywidgets.Dropdown, options=named + [(str(option), option) for option in options], **common)
        return Input(pick, pick, lambda value: value, lambda value: value)
    if shape.kind == "list":
        # One entry per line: paths may hold commas and spaces.
        area = light(ipywidgets.Textarea, rows=2, continuous_update=False, placeholder="one per line", **common)
        one = _reader(shape.item)
        # Nothing in it is None where that is legal (layers chosen by themselves), else a list of nothing.
        empty: list[Any] | None = None if shape.optional else []
        lines = lambda text: [one(line.strip()) for line in text.splitlines() if line.strip()] or empty  # noqa: E731
        return Input(area, area, lines, lambda values: "\n".join(as_text(value) for value in values or ()))
    hint = "empty" if shape.optional else ""
    # Heard when the box is left: a number that is half typed is not wrong yet.
    text = light(ipywidgets.Text, continuous_update=False, placeholder=hint, **common)
    read = _reader(shape.kind)
    source = Input(text, text, lambda typed: _maybe(read, typed, shape.optional), as_text)
    if shape.kind in ("int", "float") and not shape.optional:
        slider = make_slider(shape, default, scale)
        if slider is not None:
            source.widget = _beside(source, text, slider)
    return source


def make_slider(shape: Shape, default: Any, scale: str) -> ipywidgets.Widget | None:
    """Return a slider over the whole legal range, or (logarithmic) some decades of it;
    None where it would be no help.
    """
    # With continuous_update the page writes a loaded value back, rounded to the slider's step, unasked.
    common = {"readout": False, "continuous_update": False}
    if scale == "log" and shape.low is not None and isinstance(default, (int, float)) and default > 0:
        reach = 10.0**SLIDER_DECADES
        low = max(default / reach, shape.low or default / reach)
        high = min(default * reach, shape.high or default * reach)
        # Whole numbers move in powers of two: widths, lengths, batches.
        base = 2.0 if shape.kind == "int" else 10.0
        ends = math.log(low, base), math.log(high, base)
        if shape.kind == "int":
            ends = math.ceil(ends[0]), math.floor(ends[1])
        step = 1.0 if shape.kind == "int" else 0.05
        return light(ipywidgets.FloatLogSlider, base=base, min=ends[0], max=ends[1], step=step, value=default, **common)
    if scale == "linear" and shape.kind == "float" and shape.low is not None and shape.high is not None:
        # Beyond shares, what is legal says little about what is sensible; the box takes the rest.
        high = shape.high if shape.high <= 1 or not default else min(shape.high, SLIDER_REACH * default)
        step = (high - shape.low) / SLIDER_STEPS
        return light(ipywidgets.FloatSlider, min=shape.low, max=high, step=step, value=default or 0.0, **common)
    return None


def _beside(source: Input, text: ipywidgets.Text, slider: Any) -> ipywidgets.Widget:
    """Return text box and slider as one control; the text is the truth, the slider follows it as far as it reaches."""
    # Each sets the other: unguarded, their roundings would send values back and forth.
    moving = [False]
    base = getattr(slider, "base", None)
    low, high = (base**slider.min, base**slider.max) if base else (slider.min, slider.max)
    whole = base == 2.0

    def from_text(_change: Any) -> None:
        value = source.get()
        if not moving[0] and isinstance(value, (int, float)) and not isinstance(value, bool):
            moving[0] = True
            try:
                slider.value = min(high, max(low, value))
            finally:
                moving[0] = False

    def from_slider(change: Any) -> None:
        if not moving[0]:
            moving[0] = True
            try:
                # Three digits: a slider is no finer, and 0.003 says more than 0.0030199517.
                text.value = as_text(round(change["new"]) if whole else float(f"{change['new']:.3g}"))
            finally:
                moving[0] = False

    text.observe(from_text, names="value")
    slider.observe(from_slider, names="value")
    box = light(ipywidgets.Box, [text, slider])
    box.add_class("lab-slid")
    return box


def _reader(kind: str) -> Callable[[str], Any]:
    return {"int": _int, "float": _float, "choice": _choice}.get(kind, str)


def _maybe(read: Callable[[str], Any], typed: str, optional: bool) -> Any:
    return None if optional and not typed.strip() else read(typed)


def _float(typed: str) -> Any:
    try:
        return float(plain_minus(typed))
    except ValueError:
        return typed


def _choice(typed: str) -> Any:
    try:
        return json.loads(plain_minus(typed))
    except (json.JSONDecodeError, RecursionError):
        return typed  # the name of a kind


def _int(typed: str) -> Any:
    try:
        return int(plain_minus(typed))
    except ValueError:
        # "1e6" and "512.0" are whole numbers too, however they are written.
        number = _float(typed)
        return int(number) if isinstance(number, float) and number.is_integer() else typed


def as_text(value: Any) -> str:
    """Return a JSON value as a text box shows it: nothing for None, numbers as short as they read back,
    choices as JSON.
    """
    if value is None:
        return ""
    if isinstance(value, float):
        # The shortest text that reads back as the same number, without the ".0" and the long zeros.
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    if isinstance(value, Mapping):
        return json.dumps(value)
    return str(value)
