"""Launch a recipe: a whole run folder appears at once, a supervisor starts, the caller goes on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import RunError
from workbench.runs.create import create
from workbench.runs.folder import runs_root
from workbench.runs.launchers import launcher_named
from workbench.runs.run import Run

if TYPE_CHECKING:
    from workbench.recipe import Recipe


def launch(
    recipe: Recipe,
    on: str = "local",
    runs_dir: str | Path | None = None,
    name: str | None = None,
    *,
    run_id: str | None = None,
) -> Run:
    """Start training in the background and return at once.

    Runs launched on one machine run side by side; give each its share with ``execution.threads``.

    Args:
        on: ``local``, a process of its own that survives this one; ``inline``, one that ends with this one.
        runs_dir: the runs folder; else ``$WORKBENCH_RUNS``, else ``./runs``.
        name: what lists and plots call the run; else the recipe's name.
        run_id: of the run, for programs that must not launch it twice; else a new one.

    Raises:
        RecipeError: the name does not fit a recipe, parts of it were objects of the user's, or this machine cannot
            carry it out.
        RunError: not a recipe, no such launcher, a run of ``run_id`` is there, the runs folder cannot be written to
            (for example a full disk), or the process could not be started. Nothing half-written stays behind.

    Example:
        >>> run = launch(presets.bert_tiny(), runs_dir="runs")  # doctest: +SKIP
        >>> run.wait()["heldout_loss"]  # doctest: +SKIP
    """
    if not hasattr(recipe, "with_"):
        raise RunError(f"launch takes a Recipe, got {recipe!r}; a preset by name: workbench.presets.get('fast')")
    recipe.check_whole()
    launcher = launcher_named(on)
    if name is not None:
        recipe = recipe.with_(name=name)
    folder, lock = create(runs_root(runs_dir), lambda draft: recipe, run_id)
    launcher.submit(folder, lock)
    return Run(folder)
