"""The differences of two recipes, as rows of a table and as one line; on plain data: neither must be valid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from workbench.base import fields
from workbench.base.fields import Fields, at, flatten
from workbench.jupyter.compose.knob_help import value_text


class Difference(NamedTuple):
    """One knob, or one choice of another kind, that differs.

    Attributes:
        here, there: its values as JSON has them; None where that side has none.
    """

    path: str
    here: Any
    there: Any


def differences(here: Fields, there: Fields) -> list[Difference]:
    """Return every knob that differs, in the order of the form; a choice of another kind is one row,
    whatever its knobs.

    Example:
        >>> differences({"a": 1, "b": {"kind": "x", "c": 2}}, {"a": 1.0, "b": {"kind": "x", "c": 3}})
        [Difference(path='b.c', here=2, there=3)]
    """
    rows = dict.fromkeys(_row(here, there, path) for path in fields.differences([flatten(here), flatten(there)]))
    return [Difference(path, at(here, path), at(there, path)) for path in rows]


def _row(here: Fields, there: Fields, path: str) -> str:
    """Return the path itself, or that of the choice around it of which the two sides have different kinds."""
    parts = path.split(".")
    for count in range(1, len(parts)):
        around = ".".join(parts[:count])
        mine, theirs = at(here, around), at(there, around)
        # Knobs of different methods have nothing to be compared with, even where they bear one name.
        if not (isinstance(mine, Mapping) and isinstance(theirs, Mapping) and mine.get("kind") == theirs.get("kind")):
            return around
    return path


def change_text(before: Fields, after: Fields) -> str:
    """Return a change in a few words, as a tooltip or a status line has room for.

    Example:
        >>> change_text({"seed": 0}, {"seed": 1})
        'seed 0 → 1'
    """
    found = differences(before, after)
    if len(found) == 1:
        path, old, new = found[0]
        # A choice by its kind alone: its knobs would fill the line.
        sides = [str(side["kind"]) if isinstance(side, Mapping) and "kind" in side else side for side in (old, new)]
        return f"{path} {value_text(sides[0], 30)} → {value_text(sides[1], 30)}"
    paths = [change.path for change in found]
    return f"{len(paths)} knobs: {', '.join(paths[:3])}{' …' if len(paths) > 3 else ''}" if paths else "nothing"
