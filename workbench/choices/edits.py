"""Edits of a recipe's plain fields: any number of them at once, whatever their order.

An edit is a dotted path and a value. Of several, the kinds of choices come first, then the knobs inside them, so that
no knob is lost to a kind that stands later in the list. Another kind starts from its own defaults, but for the knobs
that both kinds take from one declaration (:meth:`Choice.shared_knobs`).
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel
from pydantic_core import PydanticUndefined, to_jsonable_python

from workbench.base.errors import RecipeError, unknown
from workbench.choices.choice import Choice, readable
from workbench.choices.knob import as_plain

DEEPEST = 16
"""Parts of the longest path; the deepest knob of a recipe has five."""

MOST_VALUES, MOST_BITS = 100_000, 1000
"""Values of a recipe, all paths of a data choice among them; bits of a whole number, all of which a float can hold."""

Fields = dict[str, Any]


class _Leaf(NamedTuple):
    """One value of an edit, at its full path; ``kind``: it names a choice."""

    parts: tuple[str, ...]
    value: Any
    kind: bool


def edit(model: type[BaseModel], fields: Fields, edits: Iterable[tuple[str, Any]]) -> None:
    """Change ``fields``, the plain fields of ``model``, in place; nothing is checked but the paths.

    Args:
        model: the recipe, or a choice.
        fields: as ``model_dump(mode="json")`` gives them.
        edits: (dotted path, value). A mapping edits the present value, a text names a kind, a choice replaces the
            present value; of two values for one knob the later counts.

    Raises:
        RecipeError: a path that leads nowhere.
    """
    leaves = [leaf for path, value in edits for leaf in _leaves(tuple(path.split(".")), as_plain(value))]
    # Stable: among equally deep ones the order of the edits counts.
    for leaf in sorted(leaves, key=lambda leaf: len(leaf.parts)):
        _apply(model, fields, leaf)


def unreadable_value(fields: Any) -> str:
    """Return the first value that no knob can hold, as ``"path: why"``; empty if there is none.

    Half a character, an integer beyond every float, too deep a nest, too many values: pydantic, ``repr`` and JSON would
    raise errors of their own.
    """
    todo: list[tuple[tuple[str, ...], Any]] = [((), fields)]
    for _ in range(MOST_VALUES):
        if not todo:
            return ""
        path, value = todo.pop()
        why = ""
        if isinstance(value, Mapping):
            todo += [((*path, str(key)), inner) for key, inner in value.items()]
            if not all(isinstance(key, str) and _is_unicode(key) for key in value):
                why = "holds a name that is no Unicode text"
        elif isinstance(value, list | tuple | set | frozenset):
            todo += [((*path, str(place)), inner) for place, inner in enumerate(value)]
        elif isinstance(value, str) and not _is_unicode(value):
            why = "holds half a character, which is no Unicode text; type it again"
        elif isinstance(value, int) and value.bit_length() > MOST_BITS:
            why = f"a whole number of {value.bit_length():,} bits; no knob takes one"
        if why or len(path) > DEEPEST:
            shown = ".".join(path[:DEEPEST]).encode("ascii", "backslashreplace").decode()
            return f"{shown or 'recipe'}: {why or 'nested deeper than any recipe is'}"
    return f"recipe: more than {MOST_VALUES:,} values"


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def with_kind(axis: str, before: Any, kind: str) -> Fields:
    """Return the fields of a choice of ``kind``: as they are where ``before`` is one,
    else its defaults and what both share.

    Args:
        before: the present value: the fields of a choice, or the number of a scheduled knob.
        kind: registered or not; of one that is not, only the name is taken over, and the recipe's check refuses it.
    """
    old = before if isinstance(before, dict) else {}
    known = readable(axis)
    if old.get("kind") == kind or kind not in known:
        return {**old, "kind": kind}
    return {**defaults(known[kind]), **shared_values(axis, before, kind)}


def shared_values(axis: str, before: Any, kind: str) -> Fields:
    """Return the values that stay where a choice gives way to one of ``kind``, which is registered; of no choice, none.

    Args:
        before: the fields of the choice, or the number of a scheduled knob.
    """
    known = readable(axis)
    old = before if isinstance(before, dict) and before.get("kind") in known else {}
    shared = known[kind].shared_knobs(known[old["kind"]]) if old else ()
    return {name: old[name] for name in shared if name in old}


def defaults(model: type[BaseModel]) -> Fields:
    """Return every default of a model as JSON has it; required fields are left out."""
    values = {name: info.get_default(call_default_factory=True, validated_data={}) for name, info in
              model.model_fields.items()}  # fmt: skip
    return {
        name: value.model_dump(mode="json") if isinstance(value, BaseModel) else to_jsonable_python(value)
        for name, value in values.items()
        if value is not PydanticUndefined
    }


def axis_of(annotation: Any) -> str:
    """Return the axis whose choices a field of this type takes; empty where it takes none."""
    if isinstance(annotation, type) and issubclass(annotation, Choice):
        return annotation.axis
    return next(filter(None, map(axis_of, typing.get_args(annotation))), "")


def _leaves(parts: tuple[str, ...], value: Any) -> Iterator[_Leaf]:
    if len(parts) > DEEPEST:
        raise RecipeError(f"{'.'.join(parts)[:60]}: nested deeper than any recipe is")
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            if not isinstance(key, str):
                raise RecipeError(f"{'.'.join(parts)}: knobs are named by texts, got {key!r:.60}")
            yield from _leaves((*parts, key), inner)
    elif parts[-1] == "kind" and len(parts) > 1:
        yield _Leaf(parts[:-1], value, True)
    else:
        yield _Leaf(parts, value, False)


def _apply(model: type[BaseModel] | None, fields: Fields, leaf: _Leaf) -> None:
    node = fields
    *parents, last = leaf.parts
    for depth, part in enumerate(parents):
        inner = node.get(part)
        if not isinstance(inner, dict):
            raise RecipeError(_no_knobs(leaf, depth, node))
        model, node = _model_of(model, part, inner), inner
    here = node.get(last)
    axis = _axis_in(model, last)
    if isinstance(leaf.value, BaseModel):
        node[last] = leaf.value.model_dump(mode="json")
    elif leaf.kind and not (axis or isinstance(here, dict)):
        raise RecipeError(_no_knobs(leaf, len(parents), node))
    elif axis and isinstance(leaf.value, str):
        node[last] = with_kind(axis, here, leaf.value)
    elif leaf.kind:
        node[last] = {**(here if isinstance(here, dict) else {}), "kind": leaf.value}
    # An empty mapping changes nothing.
    elif leaf.value != {} or not isinstance(here, dict):
        node[last] = leaf.value


def _model_of(model: type[BaseModel] | None, name: str, fields: Fields) -> type[BaseModel] | None:
    """Return the class whose fields stand under ``name``; None where no such class is known,
    as under an unknown kind.
    """
    if axis := _axis_in(model, name):
        kind = fields.get("kind")
        return readable(axis).get(kind) if isinstance(kind, str) else None
    annotation = model.model_fields[name].annotation if model and name in model.model_fields else None
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def _axis_in(model: type[BaseModel] | None, name: str) -> str:
    return axis_of(model.model_fields[name].annotation) if model and name in model.model_fields else ""


def _no_knobs(leaf: _Leaf, depth: int, node: Fields) -> str:
    """Return why a path ends at its part number ``depth``: a value that has no knobs, or nothing at all."""
    path, here, part = ".".join(leaf.parts), ".".join(leaf.parts[: depth + 1]), leaf.parts[depth]
    if part in node:
        return f"{path}: {here} is {node[part]!r:.60}, which has no knobs; change {here} itself"
    choices = [name for name, value in node.items() if isinstance(value, dict)]
    return unknown(here, part, choices, noun="knob")
