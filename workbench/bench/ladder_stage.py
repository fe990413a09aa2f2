"""Train the arms of a ladder in child processes, side by side, and no run twice."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from workbench.bench.contender import Contender
from workbench.bench.presets import trained
from workbench.bench.result import ResultsFile
from workbench.recipes.recipe import Recipe

Train = Callable[[Sequence[Recipe]], list[dict[str, Any]]]
"""Train the recipes of one arm, perhaps side by side, and return the result of each."""


@dataclass(frozen=True)
class Arm:
    """A contender of the ladder.

    Attributes:
        what: is new beside the one before.
        module: that trains it, in a process of its own, started with ``setting``.
        recipe: with the rate, warm-up and steps found so far.
    """

    name: str
    what: str
    module: str
    recipe: Recipe
    setting: Mapping[str, Any]


class Stage:
    """Trains the runs of arms in child processes, kept by module and setting, and no run twice; a context.

    Args:
        at_once: runs that train side by side.
    """

    def __init__(self, results: ResultsFile, at_once: int) -> None:
        self._results, self._at_once = results, at_once
        self._children: dict[str, list[Contender]] = {}
        self._ways: dict[str, Any] = {}

    def __enter__(self) -> Stage:
        self._stack = ExitStack()
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def trainer(self, arm: Arm) -> Train:
        """Trains recipes of an arm."""
        return lambda recipes: self.train([(arm, recipe) for recipe in recipes])

    def train(self, work: Sequence[tuple[Arm, Recipe]]) -> list[dict[str, Any]]:
        """Trains recipes of arms, neighbours side by side; those that the results have are not trained again."""
        named = [(_key(arm, recipe), arm, recipe) for arm, recipe in work]
        new = [(key, arm, recipe) for key, arm, recipe in named if self._results.known(key, recipe) is None]
        for first in range(0, len(new), self._at_once):
            some = new[first : first + self._at_once]
            keys, arms, recipes = zip(*some, strict=True)
            children = self._started(arms)
            with ThreadPoolExecutor(len(some)) as pool:
                asks = [child.ask for child in children]
                list(pool.map(trained, keys, recipes, itertools.repeat(self._results), asks))
            self._results.put(**children[0].ready)
        runs = [self._results.known(key, recipe) for key, _, recipe in named]
        # All processes of an arm train in the way that the first of them found to be the fastest.
        ways = {_child(arm): run.get("way") for (arm, _), run in zip(work, runs, strict=True) if run}
        self._ways |= {name: way for name, way in ways.items() if way}
        return [run for run in runs if run]

    def _started(self, arms: Sequence[Arm]) -> list[Contender]:
        """Return a child for each; not of a thread, with whose end the system would end them."""
        taken: list[Contender] = []
        for arm in arms:
            name = _child(arm)
            children = self._children.setdefault(name, [])
            free = [child for child in children if child not in taken]
            if not free:
                setting = {"name": name, "recipe": arm.recipe.to_dict(), "way": self._ways.get(name), **arm.setting}
                free = [self._stack.enter_context(Contender(arm.module, setting))]
                children += free
            taken.append(free[0])
        return taken


def _child(arm: Arm) -> str:
    return f"{arm.module.rpartition('.')[2]}{'-tuned' if arm.setting.get('tuned') else ''}"


def _key(arm: Arm, recipe: Recipe) -> str:
    warmup = getattr(recipe.optimizer.schedule, "warmup", None)
    rate = f"lr={recipe.optimizer.lr:g}/warmup={warmup}"
    return f"{_child(arm)}/{arm.what}/{rate}/{recipe.budget}/seed={recipe.seed}"
