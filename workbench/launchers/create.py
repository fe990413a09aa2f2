"""A new run folder: written aside, locked, then moved into place whole."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.base.errors import RunError
from workbench.launchers.launcher import begin
from workbench.store.folder import RunFolder, new_run_id, write_json
from workbench.store.state import fill_reserve, write_state

if TYPE_CHECKING:
    from workbench.recipes.recipe import Recipe

# A clash takes the same recipe, second and random number: eight in a row mean that something else is wrong.
_ID_ATTEMPTS = 8
_DRAFT = ".new-"
FORSAKEN_SECONDS = 86_400.0
"""Age at which a draft is nobody's any more: whoever made it was killed."""


def create(root: Path, prepare: Callable[[RunFolder], Recipe], run_id: str | None = None) -> tuple[RunFolder, int]:
    """Write a run folder aside, take its lock, move it into place; returns it and the lock's descriptor.

    Args:
        root: the runs folder; made when missing.
        prepare: puts into the draft what else the run begins with, and returns its recipe.
        run_id: of the run; None for a new one.

    Raises:
        RecipeError: this machine cannot carry the recipe out.
        EngineError: the recipe's engine is not installed; the message says how to install it.
        RunError: a run of ``run_id`` is there, or the runs folder cannot be written to. Whatever is raised, nothing
            half-written stays behind.
    """
    aside = None
    try:
        root.mkdir(parents=True, exist_ok=True)
        _remove_forsaken(root)
        # The name starts with a dot, which no run id does: lists never see it.
        aside = Path(tempfile.mkdtemp(prefix=_DRAFT, dir=root))
        # mkdtemp makes folders for the owner alone; colleagues may want to watch.
        aside.chmod(0o755)
        draft = RunFolder(aside)
        draft.telemetry.mkdir()
        draft.control.mkdir()
        draft.checkpoints.mkdir()
        recipe = prepare(draft)
        # Asked by the trainer, too; here, so that what this machine cannot do is told before there is a run. Every
        # launcher of today trains on it.
        recipe.execution.process()
        recipe.check_here()
        write_json(draft.recipe, recipe.to_dict())
        write_json(draft.needs, {"gpus": recipe.execution.gpus()})
        fill_reserve(draft)
        write_state(draft, status="queued", message="waiting to start")
        # Taken while nobody can see the folder, so that no list ever finds a run that is not alive yet and calls it
        # lost. The lock is on the file and moves with it.
        lock = begin(draft)
        try:
            return _move_into_place(draft, recipe, root, run_id), lock
        except (OSError, RunError):
            os.close(lock)
            raise
    except BaseException as error:
        if aside is not None:
            shutil.rmtree(aside, ignore_errors=True)
        if not isinstance(error, OSError):
            raise
        way_out = (
            "free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "check that it can be written to"
        )
        raise RunError(
            f"runs folder '{root}' cannot take a new run: {error.strerror or error}; {way_out}, or choose another "
            "with runs_dir (`--runs DIR`, $WORKBENCH_RUNS)"
        ) from None


def _remove_forsaken(root: Path) -> None:
    """Remove old drafts: the checkpoint that one holds under a second name takes its gigabytes for good."""
    for path in root.glob(f"{_DRAFT}*"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > FORSAKEN_SECONDS:
                shutil.rmtree(path, ignore_errors=True)


def _move_into_place(draft: RunFolder, recipe: Recipe, root: Path, run_id: str | None) -> RunFolder:
    for _ in range(_ID_ATTEMPTS):
        folder = RunFolder.of(run_id or new_run_id(recipe.name, recipe.hash), root)
        try:
            # Onto an existing run this fails, since that folder is not empty; another id is tried.
            draft.path.rename(folder.path)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
            if run_id:
                raise RunError(f"there is a run '{run_id}' in {root} already") from None
        else:
            return folder
    raise FileExistsError(errno.EEXIST, "no free run id was found")
