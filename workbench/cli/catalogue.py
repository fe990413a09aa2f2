"""``workbench choices`` and ``workbench presets``: what recipes are composed of, read from the declarations."""

from __future__ import annotations

import argparse
import json
import re
import types
import typing
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python

from workbench.base.errors import RecipeError, check_known
from workbench.choices.choice import Choice, registry
from workbench.recipes.recipe import AXES

PARTS = ("tokenizer", "schedule", "batch_rule", "step", "order", "parallel", "combine", "notes")
"""Axes that are composed into other choices rather than into the recipe itself."""


def choices(options: argparse.Namespace) -> int:
    """List every registered choice of one axis, or of all; of one, print its card as well."""
    legal = (*AXES, *PARTS)
    if options.axis is not None:
        check_known("axis", options.axis, legal, RecipeError)
    found = {axis: registry(axis) for axis in ([options.axis] if options.axis else legal)}
    if options.kind is not None:
        check_known(options.axis, options.kind, found[options.axis], RecipeError)
        choice = found[options.axis][options.kind]
        print(json.dumps(describe(choice) | {"card": choice.card()}) if options.json else choice.card().rstrip())
        return 0
    if options.json:
        print(json.dumps({axis: [describe(choice) for choice in kinds.values()] for axis, kinds in found.items()}))
        return 0
    for axis, kinds in found.items():
        print(axis)
        for kind, choice in kinds.items():
            print(f"  {kind:<20} {choice.summary()}")
            # Knobs only of the axis asked for: those of all axes would scroll the names away.
            if options.axis:
                _print_fields(describe(choice)["fields"])
    return 0


def presets(options: argparse.Namespace) -> int:
    """List the presets."""
    from workbench.recipes import presets as known

    first_lines = {name: (getattr(known, name).__doc__ or "").strip().splitlines()[0] for name in known.names()}
    # Docstrings refer to other presets in the markup of the documentation.
    found = {name: re.sub(r":func:`(\w+)`", r"\1", line).replace("`", "") for name, line in first_lines.items()}
    print(json.dumps(found) if options.json else "\n".join(f"{name:<16} {text}" for name, text in found.items()))
    return 0


def describe(choice: type[Choice]) -> dict[str, Any]:
    """Return ``kind``, ``summary`` and ``fields`` of a choice; each field with help, type, default, unit and bounds."""
    fields = {name: _field(info) for name, info in choice.model_fields.items() if name != "kind"}
    return {"kind": choice.model_fields["kind"].default, "summary": choice.summary(), "fields": fields}


def _field(info: FieldInfo) -> dict[str, Any]:
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    described: dict[str, Any] = {"help": info.description or "", "type": _type(info.annotation)}
    default = info.get_default(call_default_factory=True, validated_data={})
    if default is PydanticUndefined:
        described["required"] = True
    else:
        described["default"] = to_jsonable_python(default)
    if extra.get("unit"):
        described["unit"] = extra["unit"]
    for bound in info.metadata:
        for name in ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length"):
            if (value := getattr(bound, name, None)) is not None:
                described[name] = to_jsonable_python(value)
    return described


def _type(annotation: Any) -> str:
    """Return ``float or schedule``, ``'adam' | 'sgd'``: what may stand there, in words."""
    if annotation is type(None):
        return "null"
    if isinstance(annotation, type) and issubclass(annotation, Choice):
        return annotation.axis
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _type(parts[0])
    if origin is typing.Literal:
        return " | ".join(json.dumps(part) for part in parts)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_type(part) for part in parts)
    if origin is tuple:
        return f"list of {_type(parts[0])}"
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _print_fields(fields: dict[str, dict[str, Any]]) -> None:
    for name, field in fields.items():
        default = "required" if field.get("required") else json.dumps(field["default"])
        unit = f" {field['unit']}" if "unit" in field else ""
        legal = f" ({field['type']})" if '"' in field["type"] else ""
        print(f"      {name} = {default}{unit}{legal}: {field['help']}")
