"""A recipe in the making: its knobs, valid or not, what they are compared with, and the way back. No widgets."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.base.errors import RecipeError
from workbench.base.fields import at
from workbench.choices.choice import Problem, registry
from workbench.choices.schedules import Schedule
from workbench.forecasting.forecast import unusual
from workbench.jupyter.compose.differences import change_text, differences
from workbench.jupyter.compose.history import History
from workbench.jupyter.compose.knob_notes import Doubt
from workbench.jupyter.compose.sources import title_of
from workbench.recipes.recipe import Recipe

_MOST_ROUNDS = 4
"""Rounds of looking behind a mistake: at a field, its choice, the whole recipe."""


@dataclass(frozen=True)
class State:
    """The state that undo goes back to.

    Attributes:
        fields: all knobs as JSON has them, valid or not.
        base: the recipe that marks and resets refer to.
        source: where ``base`` came from (see :mod:`workbench.jupyter.compose.sources`); None for a recipe that was
        given.
    """

    fields: Mapping[str, Any]
    base: Recipe
    source: str | None

    @property
    def began(self) -> str:
        """Return the name of ``base``."""
        return title_of(self.source) if self.source else "the given recipe"

    def to_dict(self) -> dict[str, Any]:
        """As JSON, for another kernel."""
        return {"fields": dict(self.fields), "base": self.base.to_dict(), "source": self.source}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> State:
        """Restore what :meth:`to_dict` gave.

        Raises:
            RecipeError, KeyError: the recipe it began with is none any more.
        """
        return cls(given["fields"], Recipe(**given["base"]), given["source"])


def described(before: State, after: State) -> str:
    """Return the change from one state to the next in a few words."""
    if before.base is after.base or before.source == after.source:
        return change_text(before.fields, after.fields)
    return f"{before.began} → {after.began}"


class Composition:
    """The present state, checked, and those before and after it.

    Attributes:
        recipe: None while there are problems, of the recipe or of this machine with it.
        problems: why there is none.
    """

    def __init__(self, recipe: Recipe, source: str | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.recipe: Recipe | None = None
        self.problems: list[Problem] = []
        self._history = History(State(recipe.to_dict(), recipe, source))
        # The last that was a recipe, whether or not this machine can carry it out.
        self._sound: Mapping[str, Any] = recipe.to_dict()
        self._check()

    @property
    def state(self) -> State:
        """The present state."""
        return self._history.present

    @property
    def doubts(self) -> list[Doubt]:
        """Knobs of the recipe that break no rule and are yet far off; what its forecast has against it is not here."""
        if self.recipe is None:
            return []
        found = unusual(self.recipe)
        return [*(Doubt(*one) for one in self.recipe.data.notices()), *([] if found is None else [Doubt(*found)])]

    @property
    def undoes(self) -> str:
        """Return what :meth:`undo` would take back, in a few words; empty where that is nothing."""
        return self._history.undone_by(described)

    @property
    def redoes(self) -> str:
        """Return what :meth:`redo` would do again, in a few words; empty where that is nothing."""
        return self._history.redone_by(described)

    def change(self, fields: Mapping[str, Any]) -> None:
        """Knobs have other values; marks and resets stay as they are."""
        self._record(State(fields, self.state.base, self.state.source))

    def begin(self, recipe: Recipe, source: str | None, fields: Mapping[str, Any] | None = None) -> None:
        """Another beginning: ``recipe``, with all knobs at its values, or at those of ``fields``."""
        self._record(State(recipe.to_dict() if fields is None else fields, recipe, source))

    def undo(self) -> list[str]:
        """Go back by one change; returns the paths that moved."""
        return self._walk(self._history.undo)

    def redo(self) -> list[str]:
        """Go forward by one change; returns the paths that moved."""
        return self._walk(self._history.redo)

    def _record(self, state: State) -> None:
        before = self.state
        paths = [change.path for change in differences(before.fields, state.fields)]
        # Walking through a list of presets with the arrow keys is one change, as moving one slider is.
        key = "source" if before.source != state.source else _key(paths, state.fields)
        self._history.record(state, key, self._clock())
        self._check()

    def _walk(self, step: Callable[[], State]) -> list[str]:
        before = self.state.fields
        after = step().fields
        self._check()
        return [change.path for change in differences(before, after)]

    def _check(self) -> None:
        fields = dict(self.state.fields)
        # Built first, since that is what nearly always can be: to check and then to build would check everything twice.
        try:
            self.recipe, self.problems = Recipe(**fields), []
        except RecipeError:
            self.recipe, self.problems = None, all_problems(fields, self._sound)
        # Launched from here, it would train here.
        if self.recipe is not None:
            self._sound = fields
            # The text, too, which a launch would refuse.
            if here := [*self.recipe.problems_here(), *self.recipe.data.problems_here()]:
                self.recipe, self.problems = None, here


def _key(paths: Sequence[str], fields: Mapping[str, Any]) -> str:
    """Name the subject of a change: one knob, or a schedule whose curve moves several at once; empty for any other."""
    if len(paths) == 1:
        return paths[0]
    parent, *others = {path.rpartition(".")[0] for path in paths} or {""}
    around = None if others else at(fields, parent)
    drawn = isinstance(around, Mapping) and around.get("kind") in registry(Schedule.axis)
    return f"{parent}." if drawn else ""


def all_problems(fields: Mapping[str, Any], sound: Mapping[str, Any]) -> list[Problem]:
    """Return what is wrong with ``fields``, by path, also what a field that cannot be read would hide.

    Args:
        fields: all knobs as JSON has them.
        sound: those of a recipe, whose values stand in for what cannot be read; defaults where it has no such knob.

    Example:
        >>> sound = Recipe().to_dict()
        >>> wrong = {**sound, "optimizer": {**sound["optimizer"], "lr": "banana"}, "seed": -1}
        >>> [problem.path for problem in all_problems(wrong, sound)]
        ['optimizer.lr', 'seed']
    """
    problems: list[Problem] = []
    for _round in range(_MOST_ROUNDS):
        told = {problem.path for problem in problems}
        found = [problem for problem in Recipe.check(fields) if problem.path not in told]
        problems += found
        for problem in found:
            fields = _mended(fields, sound, problem.path.split("."))
        if not found:
            break
    return problems


def _mended(fields: Mapping[str, Any], sound: Mapping[str, Any], path: list[str]) -> dict[str, Any]:
    """Return a copy of ``fields`` with the value at ``path`` as ``sound`` has it, else without it,
    which is its default.
    """
    key, *rest = path
    mended, inner, known = dict(fields), fields.get(key), sound.get(key)
    alike = isinstance(inner, Mapping) and isinstance(known, Mapping) and inner.get("kind") == known.get("kind")
    # A kind that is none has no knobs of its own.
    if rest and isinstance(inner, Mapping) and rest != ["kind"]:
        mended[key] = _mended(inner, known if alike and isinstance(known, Mapping) else {}, rest)
    elif key in sound:
        mended[key] = known
    else:
        mended.pop(key, None)
    return mended
