"""One field of a choice: its declaration, and the check of what is given for it."""

from __future__ import annotations

import math
import operator
import os
import typing
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any

from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from workbench.base.errors import unknown

MOVES = "moves during a run"
"""Marks, in a field's metadata, a knob that takes a number or a schedule (``schedules.Scheduled``)."""

BOUNDS: dict[str, tuple[str, Callable[[float, float], bool]]] = {
    "exclusiveMinimum": (">", operator.gt),
    "minimum": (">=", operator.ge),
    "exclusiveMaximum": ("<", operator.lt),
    "maximum": ("<=", operator.le),
}
"""JSON Schema's words for bounds -> (sign, test)."""
_OF_PYDANTIC = {"gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum"}


def bounds_of(field: FieldInfo) -> dict[str, float]:
    """Return bounds of a knob in JSON Schema's words: pydantic's own,
    or those that ``schedules.scheduled_knob`` declares.
    """
    # pydantic would take a function there as well; `knob` always writes a dictionary.
    found: dict[str, Any] = {**field.json_schema_extra} if isinstance(field.json_schema_extra, dict) else {}
    # Of annotated_types each bound is a class with one field of its name.
    names = [(item, name) for item in field.metadata for name in _OF_PYDANTIC if hasattr(item, name)]
    found |= {_OF_PYDANTIC[name]: getattr(item, name) for item, name in names}
    return {word: float(found[word]) for word in BOUNDS if word in found}


def legal_bounds(bounds: Mapping[str, float]) -> str:
    """Return bounds in signs; empty without any.

    Example:
        >>> legal_bounds({"minimum": 1, "maximum": 1048576})
        '>= 1 and <= 1,048,576'
    """
    texts = (f"{bound:,.0f}" if bound == round(bound) < 1e12 else f"{bound:g}" for bound in bounds.values())
    return " and ".join(f"{BOUNDS[word][0]} {text}" for word, text in zip(bounds, texts, strict=True))


def not_a_number(field: FieldInfo, given: str) -> str:
    """Return why a text is no value of a knob for numbers: what is legal, and the nearest; empty where it may be one.

    Example:
        >>> from workbench.choices.architectures.pre_ln import PreLN
        >>> not_a_number(PreLN.model_fields["layers"], "12.5")
        "must be a whole number >= 1 and <= 256, got '12.5'; nearest: 12 or 13"
    """
    arms = typing.get_args(field.annotation) or (field.annotation,)
    moves, whole = MOVES in field.metadata, float not in arms
    if not moves and not {*arms} <= {int, float, NoneType}:
        return ""
    try:
        number = float(given)
    except ValueError:
        number = math.nan
    if not moves and math.isfinite(number) and (number.is_integer() or not whole):
        return ""
    bounds = bounds_of(field)
    legal = f"a {'whole ' * whole}number {legal_bounds(bounds)}".rstrip()
    ways = ", or a schedule" * moves + ", or nothing" * (NoneType in arms)
    near = {math.floor(number), math.ceil(number)} if whole and math.isfinite(number) else ()
    fit = [str(each) for each in sorted(near) if all(BOUNDS[word][1](each, bound) for word, bound in bounds.items())]
    got = f"{given!r:.200}" if given.strip() else "nothing"
    return f"must be {legal}{ways}, got {got}{'; nearest: ' * bool(fit)}{' or '.join(fit)}"


def knob(default: Any = ..., help: str = "", *, unit: str = "", scale: str = "linear", **bounds: Any) -> Any:
    """Declare one field of a choice.

    Args:
        default: value when the user says nothing (``...`` makes the knob required).
        help: one line shown beside the knob.
        unit: what the number counts, for example ``tokens`` or ``seconds``; empty for a pure number.
        scale: ``linear`` or ``log``, how a slider should move.
        **bounds: pydantic's ``gt, ge, lt, le, multiple_of, min_length, pattern``; or ``default_factory``.
    """
    # Travels with the field, where forms, listings and the JSON schema find it.
    extra: dict[str, Any] = {"unit": unit, "scale": scale}
    # pydantic refuses a default beside a default_factory, even when it is `...`.
    if "default_factory" in bounds:
        return Field(description=help, json_schema_extra=extra, **bounds)
    return Field(default, description=help, json_schema_extra=extra, **bounds)


def as_plain(value: Any) -> Any:
    """Return a value as JSON has it: paths become text, arrays lists, numbers of other libraries Python's.

    Example:
        >>> from pathlib import Path
        >>> as_plain({"paths": [Path("a.txt")]})
        {'paths': ['a.txt']}
    """
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {name: as_plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(inner) for inner in value]
    # Of numpy's and torch's numbers and arrays, neither of which is imported for it.
    return as_plain(value.tolist()) if hasattr(value, "tolist") else value


def known_fields(model: type[BaseModel], value: Any) -> Any:
    """Return ``value`` itself; an error if it holds a field that ``model`` lacks,
    or text or true/false for a number.
    """
    for name, given in value.items() if isinstance(value, Mapping) else ():
        if name not in model.model_fields:
            # Who leaves out which choice a knob is of means that one.
            whole = [
                f"'{part}.{name}'" for part, inner in value.items() if isinstance(inner, Mapping) and name in inner
            ]
            meant = f"unknown knob '{name}'; did you mean {' or '.join(whole[:3])}?"
            why = meant if whole else unknown("", name, model.model_fields, noun="knob")
            raise PydanticCustomError("knob", "{why}", {"name": name, "why": why})
        field = model.model_fields[name]
        types = typing.get_args(field.annotation) or (field.annotation,)
        # Of one that moves a text may name a schedule, which only a choice knows.
        if isinstance(given, str) and MOVES not in field.metadata and (why := not_a_number(field, given)):
            raise PydanticCustomError("knob", "{why}", {"name": name, "why": why})
        # pydantic would read true as 1: a learning rate of 1 that nobody asked for.
        if isinstance(given, bool) and bool not in types and (int in types or float in types):
            why = f"must be a number, got {str(given).lower()}"
            raise PydanticCustomError("knob", "{why}", {"name": name, "why": why})
    return value
