"""A recipe as Python that builds it: where it starts, and what is changed there."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from pprint import pformat
from typing import Any

from workbench.base.fields import at, put, same
from workbench.choices.choice import registry
from workbench.choices.edits import axis_of, with_kind
from workbench.recipes import presets

Fields = Mapping[str, Any]


def recipe_code(fields: Fields, start: str, base: Fields) -> str:
    """Return an expression that builds a recipe.

    Args:
        fields: of the recipe, as JSON has them. start: an expression, such as ``wb.presets.fast()``. base: its fields.
    """
    changes = {key: _change(key, fields[key], base[key]) for key in fields if not same(fields[key], base[key])}
    lines = [f"    {key}={_literal(value)}," for key, value in changes.items()]
    return f"{start}.with_(\n" + "\n".join(lines) + "\n)" if lines else start


def shortest_code(fields: Fields, starts: Mapping[str, Fields], apart: Iterable[str] = ()) -> str:
    """Return :func:`recipe_code` from the start that leaves the least to say.

    Args:
        starts: fields by expression, beside the presets'.
        apart: dotted paths that are said elsewhere; they stay as the start has them.
    """
    known = {f"wb.presets.{name}()": presets.get(name).to_dict() for name in presets.names()}

    def code(start: str, base: Fields) -> str:
        said = functools.reduce(lambda found, path: put(found, path, at(base, path)), apart, fields)
        return recipe_code(said, start, base)

    return min((code(start, base) for start, base in [*starts.items(), *known.items()]), key=len)


def _change(axis: str, here: Any, there: Any) -> Any:
    """Return the smallest value for ``with_`` that turns ``there`` into ``here``;
    ``axis`` is where its kinds are found.
    """
    if not isinstance(here, Mapping):
        return here
    model = registry(axis)[here["kind"]] if "kind" in here else None
    alike = isinstance(there, Mapping) and here.get("kind") == there.get("kind")
    # Another kind starts from its own defaults and what it shares, so only what differs from those needs saying.
    start = with_kind(axis, there, here["kind"]) if model and not alike else there
    changed = {key: value for key, value in here.items() if key != "kind" and not same(value, start.get(key))}
    axes = {key: axis_of(model.model_fields[key].annotation) for key in changed} if model else {}
    inner = {key: _change(axes.get(key, ""), value, start.get(key)) for key, value in changed.items()}
    return inner if alike or model is None else {"kind": here["kind"]} | inner


def _literal(value: Any) -> str:
    return pformat(value, sort_dicts=False, width=76).replace("\n", "\n    ")
