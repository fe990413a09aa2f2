"""The checkpoint that a composed recipe goes on from, and the bar that shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench.choices.choice import Problem
from workbench.client.fork_point import ForkPoint
from workbench.jupyter.compose.fork_bar import ForkBar
from workbench.recipes.recipe import Recipe
from workbench.store.folder import RunFolder


class Forking:
    """The checkpoint from which a composed fork goes on, if one is composed.

    Args:
        moved: called with the step of another checkpoint that the user chose.
        ended: called when the user wants a new run instead.

    Attributes:
        point: the checkpoint; None for a new run. bar: stands in the place of the presets while there is one.
        hindrance: why nothing can be launched now, while a fork of it begins.
    """

    def __init__(self, moved: Callable[[int], None], ended: Callable[[], None]) -> None:
        self.point: ForkPoint | None = None
        self.hindrance = ""
        self.bar = ForkBar(moved, ended)

    def begin(self, folder: RunFolder, step: int | None = None) -> ForkPoint:
        """Go on from the checkpoint of ``step``, or from the newest.

        Raises:
            RunError: there is no such checkpoint, or it cannot be read.
        """
        self.point = ForkPoint.of(folder, step)
        self.bar.show(folder, self.point.step)
        return self.point

    def end(self) -> None:
        """Compose a new run again."""
        self.point = None
        self.bar.hide()

    @property
    def kept(self) -> dict[str, Any] | None:
        """The arguments of :meth:`begin` in another kernel, as JSON."""
        return None if self.point is None else {"run": self.point.folder.id, "step": self.point.step}

    def judge(self, recipe: Recipe) -> tuple[str, str]:
        """Show what a fork under this recipe may spend; why it cannot go on, and what speaks against it."""
        if self.point is None:
            return "", ""
        self.bar.say_budget(self.point.budget_text(recipe))
        return self.point.problem(recipe), self.point.scarce(recipe)

    def objections(self, recipe: Recipe) -> list[Problem]:
        """Return the parts of a recipe that no fork can change, each beside its knob."""
        refused = [] if self.point is None else self.point.refused(recipe)
        return [Problem(path, "a fork cannot change it: it belongs to the checkpoint") for path in refused]

    def ahead(self, recipe: Recipe | None) -> Recipe | None:
        """Return the part of a recipe that is still to be trained: all of it, but for a fork."""
        return self.point.rest(recipe) if self.point and recipe else recipe
