"""Axis after axis: from where the recipe stands, each knob in its turn keeps what pays by more than seeds differ.

Coordinate descent over the space in its order, at most :data:`ROUNDS` times round, until nothing more pays. A list
offers all its values; a range is climbed: half and twice the present value (an eighth of a range that is not
logarithmic), and on from the better one while that gets better still. A value is kept where its mean over seeds is
better than that of the present setting by more than twice the standard error of such a difference, so that what only
luck favours stays out.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.base.errors import RecipeError
from workbench.base.fields import at
from workbench.experiments.sweep.space import Knob, Space, Values, applied

if TYPE_CHECKING:
    from workbench.recipes.recipe import Recipe

ROUNDS = 3
FEWEST_SEEDS = 2
"""The fewest seeds: of one, nobody knows how much is luck."""
_CLIMB = 4
"""Values in one direction that one turn of a range tries at most."""
_PARTS = 8


class Seen(NamedTuple):
    """A known setting: the index of its point, and its mean score, infinite where it failed."""

    point: int
    score: float


Look = Callable[[Values], Seen | None]
"""Return what is known of a setting that was drawn; None while it trains."""


class Try(NamedTuple):
    """A value of a knob that was tried; ``gain``: by how much it is better than the present one, in the score."""

    value: Any
    point: int
    gain: float


@dataclass(frozen=True)
class Step:
    """A knob in its turn.

    Attributes:
        before, after: its value; the same where nothing was kept.
        needed: what a gain had to exceed; NaN where seeds say nothing about it.
    """

    round: int
    path: str
    before: Any
    after: Any
    tried: tuple[Try, ...]
    needed: float

    @property
    def best(self) -> Try:
        """The best value that was tried beside the present one."""
        return max(self.tried, key=lambda each: each.gain)

    @property
    def kept(self) -> bool:
        """True where it replaced the present value."""
        return bool(self.after != self.before)


@dataclass
class Walk:
    """The progress of a search.

    Attributes:
        current: the setting that is kept so far. steps: what it was decided by.
        wanted: settings to train before anything more is decided; those that train are not among them. Where the
            budget is spent, those that it had no room for.
        over: nothing more pays, or the rounds are spent; never where the budget was spent before.
    """

    current: Values
    steps: list[Step] = field(default_factory=list)
    wanted: list[Values] = field(default_factory=list)
    over: bool = False


class _Missing(Exception):
    def __init__(self, wanted: list[Values]) -> None:
        self.wanted = wanted


def walk(
    settings: Settings, space: Space, known: Callable[[Values], bool], look: Look, needed: float, *,
    spent: bool = False,
) -> Walk:  # fmt: skip
    """Return the progress of a search that knows some settings: a pure function of them.

    Args:
        known: whether a setting was drawn. look: what it came to.
        needed: what a gain has to exceed; NaN keeps nothing.
        spent: nothing more is trained, and what is known decides.
    """
    found = Walk(settings.start(space))

    def seen(drawn: Sequence[Values]) -> list[Seen | None]:
        results = [look(each) if known(each) else None for each in drawn]
        missing = [each for each, result in zip(drawn, results, strict=True) if result is None]
        if missing and not spent:
            raise _Missing([each for each in missing if not known(each)])
        found.wanted += missing
        return results

    try:
        for number in range(1, ROUNDS + 1):
            before = found.current
            for path, knob in space.items():
                _step(found, settings, space, path, knob, number, seen, needed)
            if found.current == before:
                break
    except _Missing as missing:
        found.wanted = missing.wanted
        return found
    found.over = not found.wanted
    return found


class Settings:
    """Settings of one recipe, each worked out once: a search looks at all of them whenever a run has ended.

    Args:
        recipe: as JSON.
    """

    def __init__(self, recipe: Mapping[str, Any]) -> None:
        from workbench.recipes.recipe import Recipe

        self._recipe = Recipe(**recipe)
        self._applied: dict[str, tuple[Recipe, Values] | None] = {}
        self._moved: dict[str, dict[str, Any] | None] = {}

    @staticmethod
    def of(recipe: Mapping[str, Any]) -> Settings:
        """Return those of a recipe, cached."""
        return _settings_of(json.dumps(recipe, sort_keys=True))

    def start(self, space: Space) -> Values:
        """Return the recipe's values at the paths of a space, without knobs that it lacks and whole choices."""
        return _values(self._recipe.to_dict(), space)

    def key(self, drawn: Values) -> str:
        """Return a key that tells settings apart, as :func:`workbench.experiments.sweep.points.key_of`."""
        found = self._at(drawn)
        return json.dumps(drawn if found is None else found[1], sort_keys=True)

    def has(self, current: Values, path: str) -> bool:
        """Return True where the present choices have a knob."""
        found = self._at(current)
        return found is not None and _owner(found[0].to_dict(), path) is not None

    def moved(self, space: Space, current: Values, path: str, value: Any) -> Values:
        """Return a setting with another value of one knob and its consequences: another optimizer brings its rate."""
        key = json.dumps([current, path, value], sort_keys=True)
        if key not in self._moved:
            found = self._at(current)
            try:
                self._moved[key] = None if found is None else found[0].edited([(path, value)]).to_dict()
            except RecipeError:
                self._moved[key] = None  # its point says why it cannot be trained
        fields = self._moved[key]
        if fields is None:
            return {**current, path: value}
        choices = {other: held for other, held in current.items() if isinstance(held, dict)}
        return {**choices, **_values(fields, space), path: value}

    def first(self, space: Space) -> list[Values]:
        """List the settings of the first decision: the recipe as it stands, and the first knob's turn."""
        start = self.start(space)
        path, knob = next(iter(space.items()))
        return [start, *(self.moved(space, start, path, value) for value in alternatives(knob, start.get(path)))]

    def _at(self, drawn: Values) -> tuple[Recipe, Values] | None:
        key = json.dumps(drawn, sort_keys=True)
        if key not in self._applied:
            try:
                self._applied[key] = applied(self._recipe, drawn)
            except RecipeError:
                self._applied[key] = None
        return self._applied[key]


@functools.lru_cache(maxsize=8)
def _settings_of(recipe: str) -> Settings:
    return Settings(json.loads(recipe))


def _values(fields: Mapping[str, Any], space: Space) -> Values:
    owners = {path: (_owner(fields, path), path.rpartition(".")[2]) for path in space}
    found = {path: owner[name] for path, (owner, name) in owners.items() if owner is not None}
    return {path: value for path, value in found.items() if not isinstance(value, dict)}


def _owner(fields: Mapping[str, Any], path: str) -> Mapping[str, Any] | None:
    """Return the choice that has a knob; None where none has."""
    parent, _, name = path.rpartition(".")
    owner = at(fields, parent) if parent else fields
    return owner if isinstance(owner, dict) and name in owner else None


def _step(
    found: Walk, settings: Settings, space: Space, path: str, knob: Knob, number: int,
    seen: Callable[[Sequence[Values]], list[Seen | None]], needed: float,
) -> None:  # fmt: skip
    """Take one knob's turn; raises :class:`_Missing` where settings are not known yet."""
    here = found.current.get(path)
    values = alternatives(knob, here)
    if not values or not settings.has(found.current, path):
        return

    def setting(value: Any) -> Values:
        return settings.moved(space, found.current, path, value)

    # All at once, so that they train side by side.
    present, *results = seen([found.current, *map(setting, values)])
    tried = [(value, each) for value, each in zip(values, results, strict=True) if each is not None]
    if present is None or not tried:
        return
    if not knob.values and isinstance(here, int | float):
        value, best = min(tried, key=lambda each: each[1].score)
        for _ in range(_CLIMB - 1):
            further = _beside(knob, value, 1 if value > here else -1)
            if not best.score < present.score or further is None:
                break
            (result,) = seen([setting(further)])
            if result is None:
                break
            tried.append((further, result))
            if not result.score < best.score:
                break
            value, best = further, result
    tries = tuple(Try(value, each.point, _gain(present, each)) for value, each in tried)
    step = Step(number, path, here, here, tries, needed)
    if step.best.gain > needed or step.best.gain == math.inf:
        step = Step(number, path, here, step.best.value, tries, needed)
        found.current = setting(step.after)
    found.steps.append(step)


def _gain(present: Seen, other: Seen) -> float:
    return present.score - other.score if math.isfinite(other.score) else -math.inf


def alternatives(knob: Knob, here: Any) -> list[Any]:
    """List the first values of a turn: the others of a list, the neighbours in a range, else its ends."""
    if knob.values or not isinstance(here, int | float):
        return [value for value in knob.ends if value != here]
    return [value for sign in (-1, 1) if (value := _beside(knob, here, sign)) is not None]


def _beside(knob: Knob, value: float, sign: int) -> float | None:
    """Return the next value of a range in a direction; None where it ends."""
    step = value * 2.0**sign if knob.log else value + sign * max((knob.high - knob.low) / _PARTS, int(knob.whole))
    further = knob.number(step)
    return further if (further > value) == (sign > 0) and further != value else None
