"""Task: model and data of a run. A session asks it, and never where they come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from workbench.base.errors import DataError
from workbench.base.files import write_bytes
from workbench.choices.data.data import Say
from workbench.choices.data.examples import Examples
from workbench.choices.data.prepare import prepare
from workbench.choices.execution.engine import Engine
from workbench.choices.objectives.text_baselines import with_windows
from workbench.recipes.recipe import Recipe
from workbench.store.checkpoints import has_checkpoint
from workbench.store.folder import RunFolder
from workbench.training.assemble import Assembled, AssembledRecipe, assemble
from workbench.training.evaluate import DURING, Evaluation, evaluate, references
from workbench.training.examples import ExampleTask
from workbench.training.reference import with_losses, with_reference


class Task(Protocol):
    """Everything a session needs to know of model and data; a recipe describes :class:`RecipeTask` whole.

    Attributes:
        scored: whether there are held-out data.
        note: what everybody should know of the run from its beginning on; empty for nothing.
        fingerprint: of the data, JSON-able, from :meth:`prepare` on.
    """

    scored: bool
    note: str
    fingerprint: dict[str, Any]

    def prepare(self, folder: RunFolder, resume: bool, say: Say) -> None:
        """Have the data ready, and keep in the run's folder what its model cannot be used without.

        Raises:
            DataError: the data cannot be had.
        """

    def assemble(self, engine: Engine) -> Assembled:
        """Return model, optimizer and data order at step 0, in a process that ``engine`` takes over."""

    def references(self, say: Say) -> dict[str, Any]:
        """Return what losses are held against, by :data:`workbench.training.evaluate.REFERENCE_KEYS`."""

    def evaluate(self, recipe: Recipe, *, final: bool) -> Evaluation:
        """Return the held-out score of the assembled model as it is; during training of a part of the held-out data."""


def task_of(recipe: Recipe) -> Task:
    """Return the task that a recipe describes."""
    return ExampleTask(recipe) if isinstance(recipe.data, Examples) else RecipeTask(recipe)


class RecipeTask:
    """A recipe's own model on its own data.

    Args:
        recipe: as launched.
    """

    scored, note = True, ""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe

    def prepare(self, folder: RunFolder, resume: bool, say: Say) -> None:
        """See :meth:`Task.prepare`; copies tokenizer and held-out set into the folder."""
        try:
            self._prepared = prepare(self._recipe.data, say=say)
            self._recipe.objective.check_data(self._prepared)
            self._recipe.data.check_budget(self._prepared, self._recipe)
        except DataError as error:
            way_on = (
                "; to train on, the run needs its text again; to evaluate, export or report it, its folder is enough"
            )
            trained = resume and has_checkpoint(folder.checkpoints)
            raise DataError(f"{error}{way_on if trained else ''}") from None
        self.fingerprint, self._folder, self._say = self._prepared.fingerprint, folder, say
        # Copies, as of the held-out set below: caches get cleared, and a run's folder must be enough to use its model.
        write_bytes(folder.tokenizer, Path(self._prepared.tokenizer_file).read_bytes())

    def assemble(self, engine: Engine) -> AssembledRecipe:
        """See :func:`workbench.training.assemble.assemble`."""
        self._prepared = with_losses(self._recipe, self._prepared, self._folder, engine.device, self._say)
        self._assembled = assemble(self._recipe, self._prepared, engine)
        with_reference(self._assembled.model, self._recipe, self._prepared, self._folder)
        self._assembled.heldout = with_windows(self._prepared, self._assembled.heldout, self._say)
        self._assembled.heldout.save(self._folder.heldout)
        return self._assembled

    def references(self, say: Say) -> dict[str, Any]:
        """See :func:`workbench.training.evaluate.references`."""
        return references(self._recipe, self._prepared, self._assembled.heldout, say=say)

    def evaluate(self, recipe: Recipe, *, final: bool) -> Evaluation:
        """See :func:`workbench.training.evaluate.evaluate`."""
        heldout = self._assembled.heldout
        return evaluate(recipe, self._assembled, heldout if final else heldout.part(DURING))
