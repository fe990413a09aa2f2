"""One field of a choice: its declaration, and the check of what is given for it."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field
from pydantic_core import PydanticCustomError

from workbench.errors import unknown


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


def known_fields(model: type[BaseModel], value: Any) -> Any:
    """``value`` itself; an error if it holds a field that ``model`` lacks, or true/false where a number belongs."""
    for name, given in value.items() if isinstance(value, Mapping) else ():
        if name not in model.model_fields:
            why = unknown("", name, model.model_fields, noun="knob")
            raise PydanticCustomError("knob", "{why}", {"name": name, "why": why})
        annotation = model.model_fields[name].annotation
        types = typing.get_args(annotation) or (annotation,)
        # pydantic would read true as 1: a learning rate of 1 that nobody asked for.
        if isinstance(given, bool) and bool not in types and (int in types or float in types):
            why = f"must be a number, got {str(given).lower()}"
            raise PydanticCustomError("knob", "{why}", {"name": name, "why": why})
    return value
