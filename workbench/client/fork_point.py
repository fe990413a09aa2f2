"""A checkpoint as the place where a fork begins: the recipe in force there, and what an edited one would mean."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.base.errors import RecipeError, RunError
from workbench.base.fields import flatten, same
from workbench.base.json_lines import number
from workbench.store.checkpoints import checkpoints, state_of, step_of
from workbench.store.effective_knobs import turns_until
from workbench.store.folder import RunFolder
from workbench.store.in_process import refuse_elsewhere
from workbench.store.origin import origin_of

if TYPE_CHECKING:
    from workbench.recipes.recipe import Recipe


def own_part(folder: RunFolder, recipe: Recipe) -> tuple[Recipe, dict[str, Any]]:
    """Return the part of a recipe that a run trains itself, to forecast it: a fork has the rest of its parent's budget.

    Returns:
        The recipe, and what a forecast of it notes: ``after_step`` of a fork, nothing of any other run.
    """
    origin = origin_of(folder)
    if origin is None:
        return recipe, {}
    amount = recipe.budget.amount
    share = origin.share({"amount": amount, "unit": recipe.budget.unit})
    # Rounded: an amount of steps less a share of it is a whole number again.
    return _with_budget(recipe, round(amount - share * amount, 6)), {"after_step": origin.step}


def _with_budget(recipe: Recipe, left: float) -> Recipe:
    if not 0 < left < recipe.budget.amount:
        return recipe
    try:
        return recipe.with_(budget={"amount": left})
    except RecipeError:
        return recipe


SCARCE = 0.05
"""A fork with less than this share of its budget left is told so before it begins."""


def steps_of(folder: RunFolder) -> list[int]:
    """Return the steps of the checkpoints that a run has now, newest first (unverified)."""
    return [step_of(path) for path in reversed(checkpoints(folder.checkpoints))]


@dataclass(frozen=True)
class ForkPoint:
    """One checkpoint of a run, read once; see :func:`workbench.client.fork.fork`, which makes the fork itself.

    Attributes:
        folder: of the run. step: of the checkpoint.
        launched: recipe of the run, as it was launched. saved: what the checkpoint says besides its tensors.
        recipe: in force at the checkpoint, with the knobs that were turned until then: what an edit starts from.
    """

    folder: RunFolder
    step: int
    launched: Recipe
    saved: dict[str, Any]
    recipe: Recipe

    @classmethod
    def of(cls, folder: RunFolder, step: int | None = None) -> ForkPoint:
        """Read the checkpoint of ``step``, or the newest. (Imports torch, through the choices.)

        Raises:
            RunError: the run has no such checkpoint, or it cannot be read; or its model and data were objects.
            RecipeError: the run's recipe cannot be read.
        """
        from workbench.recipes.recipe import Recipe

        refuse_elsewhere(folder, "be forked")
        steps = steps_of(folder)
        if not steps or (step is not None and step not in steps):
            have = f"it has those of {', '.join(map(str, reversed(steps)))}" if steps else "it has none"
            wanted = "checkpoint" if step is None else f"checkpoint of step {step}"
            raise RunError(
                f"run '{folder.id}' has no {wanted} to fork from ({have}); while it runs, 'Checkpoint' saves one"
            )
        at = steps[0] if step is None else step
        launched = Recipe.load(folder.recipe)
        try:
            saved = state_of(folder.checkpoints / f"step-{at}")
            return cls(folder, at, launched, saved, launched.with_(**(saved.get("overrides") or {})))
        except (OSError, ValueError, AttributeError, TypeError) as error:
            raise RunError(f"checkpoint step-{at} of run '{folder.id}' cannot be read ({error})") from None

    def changes(self, recipe: Recipe) -> dict[str, Any]:
        """Return the changes from :attr:`recipe` to ``recipe``, as :meth:`workbench.client.run.Run.fork` takes them."""
        before, after = self.recipe.to_dict(), recipe.to_dict()
        return {key: after[key] for key in after if after[key] != before[key]}

    def diff(self, changes: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
        """Return the knobs that a fork under ``changes`` would change, ``{path: (before, after)}``.

        Raises:
            RecipeError: a change that a fork cannot make.
        """
        from workbench.recipes.changes import fork

        return fork(self.launched, self.saved, changes).diff

    def turned_since(self) -> list[str]:
        """Return paths of the knobs that were turned while the run went on from here: a fork does not turn them."""
        overrides = flatten(self.recipe.to_dict()) | (self.saved.get("overrides") or {})
        # The checkpoint of the step at which a knob was turned may be from before or after; the last turn decides.
        last = {turn.path: turn for turn in turns_until(self.folder, sys.maxsize) if turn.step >= self.step}
        return [path for path, (step, _, _, value) in last.items()
                if step > self.step or not same(overrides.get(path), value)]  # fmt: skip

    def longer(self) -> Recipe:
        """Return :attr:`recipe`, with twice the budget where a fork would have nothing left to spend and this suffices.

        Whoever forks a finished run has to enlarge its budget; a form that begins with what can run says so best.
        """
        doubled = self.recipe.with_(budget={"amount": 2 * self.recipe.budget.amount})
        return doubled if self.problem(self.recipe) and not self.problem(doubled) else self.recipe

    def left(self, recipe: Recipe) -> float:
        """Return the rest of the budget of a fork under ``recipe``, in its unit; 0 or less once it is spent."""
        unit = recipe.budget.unit
        return recipe.budget.amount - number(self.saved.get({"steps": "step"}.get(unit, unit)))

    def rest(self, recipe: Recipe) -> Recipe:
        """Return ``recipe`` with the rest of its budget, to forecast a fork; unchanged where that makes no recipe."""
        return _with_budget(recipe, self.left(recipe))

    def budget_text(self, recipe: Recipe) -> str:
        """Return the rest of a fork's budget in words, and its change against the run's."""
        before, after = self.recipe.budget, recipe.budget
        changed = (before.amount, before.unit) != (after.amount, after.unit)
        # What is left comes first: a long text is cut.
        return self._left_text(recipe) + (f" (budget {before} \u2192 {after})" if changed else "")

    def scarce(self, recipe: Recipe) -> str:
        """Warn if a fork under ``recipe`` has next to nothing of its budget left; empty otherwise."""
        left = self.left(recipe)
        return f"{self._left_text(recipe)}: raise the budget" if 0 < left < SCARCE * recipe.budget.amount else ""

    def _left_text(self, recipe: Recipe) -> str:
        left, budget = max(0.0, self.left(recipe)), recipe.budget
        form = ",.0f" if left >= 100 or budget.unit != "seconds" else ".2g" if left < 1 else ".1f"
        return f"{left:{form}} of {budget} are left"

    def refused(self, recipe: Recipe) -> list[str]:
        """Return paths of what ``recipe`` changes and no fork can."""
        from workbench.recipes.changes import belongs_to_checkpoint

        return belongs_to_checkpoint(self.recipe, recipe)

    def problem(self, recipe: Recipe) -> str:
        """Return why a fork cannot go on under ``recipe``; empty when it can."""
        from workbench.recipes.changes import fork

        try:
            fork(self.launched, self.saved, self.changes(recipe))
        except RecipeError as error:
            return str(error)
        except (KeyError, TypeError, ValueError) as error:
            return f"checkpoint step-{self.step} of run '{self.folder.id}' cannot be read ({error!r})"
        return ""
