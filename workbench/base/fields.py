"""Fields as JSON has them, a recipe's for example: dotted paths, equality, differences. Standard library only."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Fields = Mapping[str, Any]
"""A recipe, or a part of one, as JSON has it."""


def flatten(fields: Any) -> dict[str, Any]:
    """Return values by dotted path, in the order of the fields; none where ``fields`` is no mapping.

    Example:
        >>> flatten({"optimizer": {"lr": 0.001}, "seed": 0})
        {'optimizer.lr': 0.001, 'seed': 0}
    """
    flat: dict[str, Any] = {}
    # No recursion: a file may be nested deeper than Python's stack.
    todo: list[tuple[str | None, Any]] = [(None, fields)]
    while todo:
        path, value = todo.pop()
        if isinstance(value, Mapping):
            inner = [(str(key) if path is None else f"{path}.{key}", each) for key, each in value.items()]
            todo += reversed(inner)
        elif path is not None:
            flat[path] = value
    return flat


def at(fields: Fields, path: str) -> Any:
    """Return the value at a dotted path; None where there is none."""
    value: Any = fields
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def put(fields: Fields, path: str, value: Any) -> dict[str, Any]:
    """Return a copy of ``fields`` with ``value`` at a dotted path."""
    key, _, rest = path.partition(".")
    return {**fields, key: put(fields[key], rest, value) if rest else value}


def without(fields: Fields, path: str) -> dict[str, Any]:
    """Return a copy of ``fields`` that lacks what stands at a dotted path."""
    key, _, rest = path.partition(".")
    return {name: without(value, rest) if rest and name == key else value for name, value in fields.items()
            if rest or name != key}  # fmt: skip


def as_typed(value: Any) -> str:
    """Return a value as people type it: a text as it stands, all else as JSON.

    Example:
        >>> as_typed(0.001), as_typed("full"), as_typed(True)
        ('0.001', 'full', 'true')
    """
    return value if isinstance(value, str) else json.dumps(value)


def by_axis(recipe: Fields, flat: Fields, shown: Callable[[Any], str] = as_typed) -> list[tuple[str, str, str]]:
    """Return a recipe as people read it, one row per axis: axis, choice, and its knobs in a line.

    Args:
        flat: its knobs by dotted path (:func:`flatten`), or what was steered since.
    """
    rows = []
    for axis, value in recipe.items():
        # Name and notes stand above it, and the version is of no interest to people.
        if axis in ("name", "notes", "schema_version"):
            continue
        start = f"{axis}."
        fields = {path.removeprefix(start): knob for path, knob in flat.items() if path.startswith(start)}
        said = [f"{path.replace('_', ' ')} {shown(knob)}" for path, knob in fields.items() if path != "kind"]
        kind = str(fields["kind"]) if "kind" in fields else ("" if fields else shown(flat.get(axis, value)))
        rows.append((axis, kind, ", ".join(said)))
    return rows


def same(here: Any, there: Any) -> bool:
    """Return whether two JSON values ask for the same thing (200 and 200.0 do, True and 1 do not)."""
    if isinstance(here, bool) or isinstance(there, bool):
        return here is there
    if isinstance(here, Mapping) and isinstance(there, Mapping):
        return here.keys() == there.keys() and all(same(here[key], there[key]) for key in here)
    if isinstance(here, (list, tuple)) and isinstance(there, (list, tuple)):
        return len(here) == len(there) and all(map(same, here, there))
    return bool(here == there)


def differences(columns: Sequence[Fields]) -> dict[str, list[Any]]:
    """Return ``{path: [value per column]}`` where flat columns are not all the same;
    None where a column has no such path.

    Example:
        >>> differences([{"seed": 0, "budget.amount": 9}, {"seed": 1, "budget.amount": 9.0}])
        {'seed': [0, 1]}
    """
    paths = dict.fromkeys(path for column in columns for path in column)
    rows = {path: [column.get(path) for column in columns] for path in paths}
    return {path: values for path, values in rows.items() if not all(same(value, values[0]) for value in values)}
