"""The space of a sweep: knobs by path, each with a list of values or a range, checked before a launch."""

from __future__ import annotations

import itertools
import json
import re
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from workbench.base.assignments import read_json_text
from workbench.base.errors import RecipeError, first_line
from workbench.base.fields import as_typed, at

if TYPE_CHECKING:
    from workbench.recipes.recipe import Recipe

MOST_POINTS = 1000
_MOST_CONTEXTS = 256
"""Combinations that are tried to find one in which a value is legal."""
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?"
_RANGE = re.compile(rf"\s*({_NUMBER})\s*\.\.\s*({_NUMBER})\s*(log|linear)?\s*", re.IGNORECASE)
_NOT_SWEPT = {
    "seed": "give the sweep's seeds instead (`seeds=2`, `--seeds 2`)",
    "name": "a point is named after its values",
    "notes": "it changes no training",
    "schema_version": "it changes no training",
}
Values = dict[str, Any]
"""Values of knobs by dotted path."""


@dataclass(frozen=True)
class Knob:
    """One knob of a space.

    Attributes:
        values: the legal ones; empty for a range.
        low, high: of a range, both included. log: whether it is drawn evenly in its logarithm. whole: whole numbers.
    """

    values: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    whole: bool = False

    @property
    def ends(self) -> tuple[Any, ...]:
        """All values of a list, both ends of a range."""
        return self.values or (self.number(self.low), self.number(self.high))

    def number(self, value: float) -> float:
        """Return a value of the range as recipes show it: whole, or of four digits; within the range."""
        if self.whole:
            return int(min(self.high, max(self.low, round(value))))
        return min(self.high, max(self.low, float(f"{value:.4g}")))

    def __str__(self) -> str:
        if self.values:
            return ", ".join(map(as_typed, self.values))
        return f"{self.low:g} to {self.high:g}{', logarithmic' * self.log}{', whole' * self.whole}"


Space = dict[str, Knob]


class Applied(NamedTuple):
    """A recipe with a point's values, and those of them that apply to it."""

    recipe: Recipe
    values: Values


def label(values: Values) -> str:
    """Return a point's values in one line: ``lr=0.001, kind=full``."""
    return ", ".join(f"{short(path)}={as_typed(value)}" for path, value in values.items())


def short(path: str) -> str:
    """Return a knob's path without its axis where nothing is lost, ``depth`` for ``depth.kind``."""
    *axis, name = path.split(".")
    return ".".join(axis) if name == "kind" and axis else name


def read_values(text: str, path: str) -> Any:
    """Read the values of a knob from a command line: a list as JSON, a range, or values between commas."""

    def value(part: str) -> Any:
        try:
            return read_json_text(part, path)
        except json.JSONDecodeError:
            return part.strip()

    whole = value(text)
    if isinstance(whole, list) or (isinstance(whole, str) and _RANGE.fullmatch(whole)):
        return whole
    return [value(part) for part in text.split(",")] if isinstance(whole, str) else [whole]


def space_of(asked: Mapping[str, Any], recipe: Recipe) -> Space:
    """Return the knobs of a sweep: lists of values, or ranges as text, ``"1e-4..1e-2"``.

    A range is logarithmic or whole where the knob is declared so; ``"1..8 linear"`` says otherwise.

    Raises:
        RecipeError: an unknown knob, or a value that is legal in no combination; all of them in one message.
    """
    if not isinstance(asked, Mapping) or not asked:
        raise RecipeError("a sweep needs a space: {'optimizer.lr': [1e-3, 2e-3], 'depth.kind': ['full']}")
    space, wrong = {}, []
    for path, values in asked.items():
        try:
            space[str(path)] = _knob(str(path), values)
        except RecipeError as error:
            wrong.append(str(error))
    if wrong:
        raise RecipeError("\n".join(wrong))
    contexts = list(itertools.islice(combinations(space), _MOST_CONTEXTS))
    for path, knob in space.items():
        for value in knob.ends:
            home, why = _home(recipe, space, path, value, contexts)
            if home is None:
                wrong.append(why)
            elif not knob.values:
                space[path] = _declared(home, path, knob, asked[path])
    if wrong:
        raise RecipeError("\n".join(dict.fromkeys(wrong)))
    return space


def _knob(path: str, values: Any) -> Knob:
    if path in _NOT_SWEPT:
        raise RecipeError(f"{path}: {_NOT_SWEPT[path]}")
    if isinstance(values, str):
        found = _RANGE.fullmatch(values)
        if not found or not float(found[1]) < float(found[2]):
            raise RecipeError(f"{path}: {values!r:.60} is no range; write '1e-4..1e-2', low before high, or a list")
        return Knob(low=float(found[1]), high=float(found[2]))
    if not isinstance(values, list | tuple) or not values:
        raise RecipeError(f"{path}: give a list of values, or a range as '1e-4..1e-2', got {values!r:.60}")
    keys = [json.dumps(value, sort_keys=True, default=repr) for value in values]
    if len(set(keys)) < len(keys):
        raise RecipeError(f"{path}: a value stands there twice: {', '.join(keys)[:80]}")
    return Knob(values=tuple(values))


def combinations(space: Space) -> Iterator[Values]:
    """Yield all combinations of values (of a range: its ends), the last knob fastest."""
    for values in itertools.product(*(knob.ends for knob in space.values())):
        yield dict(zip(space, values, strict=True))


def size(space: Space) -> int | None:
    """Count the combinations of a space; None where a knob has a range."""
    if any(not knob.values for knob in space.values()):
        return None
    return int(np.prod([len(knob.values) for knob in space.values()]))


def applied(recipe: Recipe, values: Values) -> Applied:
    """Return the recipe with these values, without knobs that the point's own choices do not have.

    ``depth.theta`` beside ``depth.kind`` is such a one: of the kind ``full`` there is no theta.

    Raises:
        RecipeError: the values do not go together.
    """
    from workbench.choices.edits import edit
    from workbench.recipes.recipe import Recipe

    owners = {path: [other for other in values if path != other and _below(path, other)] for path in values}
    fields = recipe.to_dict()
    edit(Recipe, fields, [(path, values[path]) for path in values if not owners[path]])
    for path in sorted((path for path in values if owners[path]), key=lambda path: path.count(".")):
        if _has(fields, path):
            edit(Recipe, fields, [(path, values[path])])
        else:
            owners[path] = ["left out"]
    kept = {path: value for path, value in values.items() if owners[path] != ["left out"]}
    return Applied(recipe.edited(kept.items()), kept)


def _below(path: str, other: str) -> bool:
    """Return True where ``path`` is a knob of the choice ``other``."""
    return path.startswith(f"{other.removesuffix('.kind')}.")


def _has(fields: Mapping[str, Any], path: str) -> bool:
    parent, _, name = path.rpartition(".")
    inner = at(fields, parent)
    return isinstance(inner, Mapping) and name in inner


def _home(recipe: Recipe, space: Space, path: str, value: Any, contexts: Iterable[Values]) -> tuple[Recipe | None, str]:
    """Return a recipe in which a knob has a value, else why there is none."""
    owners = {other: knob for other, knob in space.items() if path != other and _below(path, other)}
    tried: list[Values] = [dict(values) for values in combinations(owners)] if owners else [{}]
    tried += [values for values in contexts if values[path] == value]
    whys: list[tuple[int, str]] = []
    for values in tried:
        try:
            found = applied(recipe, {**values, path: value})
        except RecipeError as error:
            lines = str(error).splitlines()
            named = [line for line in lines if line.startswith(path)]
            whys.append((0 if named else 2, (named or lines)[0]))
            continue
        if path in found.values:
            return found.recipe, ""
        whys.append((1, _nowhere(recipe, path, value)))
    # What is wrong with the value says more than that some of the choices have no such knob, or what else is wrong.
    return None, min(whys, key=lambda why: why[0])[1]


def _nowhere(recipe: Recipe, path: str, value: Any) -> str:
    try:
        recipe.edited([(path, value)])
    except RecipeError as error:
        return first_line(error)
    return f"{path}: none of the choices that this sweep makes has this knob"


def _declared(recipe: Recipe, path: str, knob: Knob, text: str) -> Knob:
    """Return a range with the scale and the kind of number of its knob."""
    *parents, name = path.split(".")
    owner: Any = recipe
    for part in parents:
        owner = getattr(owner, part)
    field = type(owner).model_fields[name]
    kinds = typing.get_args(field.annotation) or (field.annotation,)
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    asked = (_RANGE.fullmatch(text) or ["", "", "", ""])[3]
    log = asked.lower() == "log" if asked else extra.get("scale") == "log"
    if log and knob.low <= 0:
        raise RecipeError(f"{path}: a logarithmic range begins above 0, got {text!r}; write '{text} linear'")
    return Knob(low=knob.low, high=knob.high, log=log, whole=int in kinds and float not in kinds)
