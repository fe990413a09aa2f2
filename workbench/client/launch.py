"""Launch a recipe: a whole run folder appears at once, a supervisor starts, the caller goes on."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.base.errors import RecipeError
from workbench.client.run import Run
from workbench.launchers.create import Log, create, start
from workbench.launchers.launcher import Launcher, launcher_named
from workbench.launchers.queue.changes import checked_priority
from workbench.launchers.queue.limits import check_seconds
from workbench.launchers.queue.orphans import start_orphans
from workbench.launchers.queue.turn import check_room
from workbench.store.checkpoints import duplicate, problem_with
from workbench.store.find import run_ids
from workbench.store.folder import RunFolder, name_in, new_run_id, read_object, runs_root, write_json
from workbench.store.labels import LONGEST_NAME, name_of

if TYPE_CHECKING:
    from workbench.recipes.recipe import Recipe


Begin = Callable[[RunFolder, "Recipe"], "Recipe"]
_ALIKE = 16
"""Letters of an id by which runs of one name are found; a number may follow."""


def launch(
    recipe: Recipe,
    on: str | Launcher = "local",
    runs_dir: str | Path | None = None,
    name: str | None = None,
    *,
    run_id: str | None = None,
    queue: bool = True,
    priority: int = 0,
    initial: str | Path | Begin | None = None,
    say: Log | None = print,
) -> Run:
    """Start training in the background and return at once; on a busy machine the run waits in the queue.

    A run takes as many cores as ``execution.threads`` says, all if that is empty, or one GPU: two single-threaded runs
    train side by side on two cores, and a third is queued (``run.status``).

    Args:
        recipe: what to train, complete: ``wb.presets.get("fast")``, one changed by ``with_``, ``wb.Recipe.load(path)``.
        on: ``local``, a separate process that survives this one; ``inline``, one that ends with this one; ``slurm`` or
            ``ray``, nodes of a cluster (docs/scale.md); ``hand``, nodes that somebody else starts. With knobs as text
            (``slurm:nodes=2,partition=gpu``) or as a launcher.
        runs_dir: the runs folder; else ``$WORKBENCH_RUNS``, else ``./runs``.
        name: of the run in lists and plots; else the recipe's name, with a number where a run has it already.
        run_id: for programs that must not launch a run twice; else a new id.
        queue: wait until the machine has room; False (``workbench launch --now``) trains at once, beside whatever else
            trains, and slows it down.
        priority: among waiting runs; higher goes first.
        initial: a checkpoint (a folder ``step-N``) of a run of the same model and text: the run starts from a
            copy of its weights, at its own step 0 and with a fresh optimizer. None draws weights from the seed. A
            function puts into the run's draft what it begins with, and returns its recipe.
        say: called with a line if the run waits or shares the machine, and for each thing to know about its text.

    Raises:
        DataError: the text has been prepared, and is none for the objective.
        RecipeError: not a recipe, the name is not a legal one, parts of the recipe were the user's own objects,
            ``initial`` is not a complete checkpoint, or this machine cannot execute it, or lacks its text or tokenizer.
        RunError: no such launcher, no such priority, a limit of this machine's queue, ``run_id`` exists, the runs
            folder cannot be written to (for example a full disk), or the process could not be started. No partial files
            are left behind.

    Example:
        >>> run = launch(presets.bert_tiny(), runs_dir="runs")  # doctest: +SKIP
        >>> run.wait()["heldout_loss"]  # doctest: +SKIP
    """
    recipe = _checked(recipe)
    launcher = _launcher(on, queue, priority)
    root = runs_root(runs_dir)
    name = unused_name(recipe.name, root) if name is None and run_id is None else name
    if name not in (None, recipe.name):
        recipe = recipe.with_(name=name)
    if queue and launcher.queues:
        check_room()
        check_seconds(recipe.budget)
    start_orphans(root, unless_known=True)
    if say is not None:
        _say_notices(recipe, say)
    folder, lock = create(root, lambda draft: _with_weights(draft, recipe, initial), run_id, launcher)
    told = None if say is None else lambda line: say(f"{folder.id}: {line}")
    start(folder, lock, launcher, say=told)
    return Run(folder)


def _checked(recipe: Recipe) -> Recipe:
    """Return the recipe with whole paths; text that cannot be used, or is too short, is refused once it is prepared."""
    from workbench.recipes.recipe import check_recipe

    check_recipe(recipe, "launch")
    recipe.check_whole()
    recipe.check_text_here()
    if recipe.objective.reads_text or recipe.data.limited:
        from workbench.choices.data.prepare import is_prepared, prepare

        if is_prepared(recipe.data):
            prepared = prepare(recipe.data, say=lambda line: None)
            recipe.objective.check_data(prepared)
            recipe.data.check_budget(prepared, recipe)
    return recipe.located()


def _launcher(on: str | Launcher, queue: bool, priority: int) -> Launcher:
    """Return the launcher, told whether its runs wait and who goes first."""
    priority = checked_priority(priority)
    knobs = {} if queue else {"wait": False}
    return launcher_named(on, **knobs, **({"priority": priority} if priority else {}))


def _say_notices(recipe: Recipe, say: Log) -> None:
    """Say what is to be known of the text: above all, that some of it will not be read."""
    for notice in recipe.data.notices():
        say(f"{notice.path}: {notice.message}")
    if unread := recipe.data.order.unread(recipe.data.most_tokens(recipe.budget), None):
        say(f"data.order: {unread}")


def unused_name(name: str, root: Path) -> str:
    """Return a name that no run of a folder has: ``quickstart``, then ``quickstart 2``, ``quickstart 3``."""
    stem = re.sub(r" \d+$", "", name)[: LONGEST_NAME - 6]
    slug = name_in(new_run_id(stem, "0" * 6)) or ""
    # Only those that were launched under such a name are read.
    alike = [each for each in run_ids(root) if (name_in(each) or "").startswith(slug[:_ALIKE])]
    taken = {name_of(RunFolder(root / each)) for each in alike}
    return (
        name
        if name not in taken
        else next(new for number in itertools.count(2) if (new := f"{stem} {number}") not in taken)
    )


def _with_weights(draft: RunFolder, recipe: Recipe, initial: str | Path | Begin | None) -> Recipe:
    """Copy the first weights of a run into its draft; returns the recipe."""
    if initial is None:
        return recipe
    if callable(initial):
        return initial(draft, recipe)
    path = Path(initial).expanduser().absolute()
    try:
        # Checked after the copy, which nobody else deletes.
        duplicate(path, draft.initial)
        problem = problem_with(draft.initial)
    except FileNotFoundError:
        problem = "there is no such folder"
    # Else `create` would take it for a fault of the runs folder.
    except (NotADirectoryError, PermissionError) as error:
        problem = str(error.strerror)
    if problem is not None:
        # No fault of the runs folder's: trying again would not help, and an experiment goes on without the run.
        raise RecipeError(
            f"initial: '{path}' is no checkpoint to begin with ({problem}); give a folder step-N of a run"
        )
    parent = RunFolder(path.parent.parent)
    write_json(draft.initial / "origin.json", {"run": parent.id, "data": read_object(parent.environment).get("data")})
    return recipe
