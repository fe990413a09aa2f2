"""A deleted run moves to ``.trash`` in the runs folder, where no list looks; from there it can come back."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

from workbench.base.errors import RunError
from workbench.store.find import TRASH, find, run_ids, typed
from workbench.store.folder import RunFolder, runs_root
from workbench.store.state import launcher_says, lock_held, read_state, take_lock


def trash_folder(runs_dir: str | Path | None = None) -> Path:
    """Return the folder of deleted runs; it may not exist."""
    return runs_root(runs_dir) / TRASH


def delete(folder: RunFolder) -> RunFolder:
    """Move a run that nobody trains to the trash; returns its folder there.

    Forks of it live on: they have their own copy of the checkpoint they began with.

    Raises:
        RunError: it is alive, or its folder cannot be moved; it stays as it is.
    """
    target = _kept(folder.path.parent) / folder.id
    alive = RunError(f"run '{folder.id}' is alive and cannot be deleted; stop it first (`workbench stop {folder.id}`)")
    if lock_held(folder) or not (read_state(folder).final or not launcher_says(folder)):
        raise alive
    try:
        # Held while it moves, so that nobody resumes it in between. The lock is on the file and moves with it.
        lock = take_lock(folder)
    except RunError:
        raise alive from None
    except OSError as error:
        raise RunError(f"run '{folder.id}' cannot be deleted: {error}") from None
    try:
        _move(folder.path, target)
    finally:
        os.close(lock)
    return RunFolder(target)


def restore(run: str | Path, runs_dir: str | Path | None = None) -> RunFolder:
    """Bring a deleted run back; returns its folder.

    Args:
        run: its id, a unique beginning of it, or its folder, in the trash or where it was.

    Raises:
        RunError: the trash holds no such run, or a run of that id is there again.
    """
    run_id, root = typed(run, trash_folder(runs_dir))
    root = runs_root(root)
    root = root.parent if root.name == TRASH else root
    folder = find(run_id, root / TRASH, "workbench trash")
    target = root / folder.id
    _move(folder.path, target)
    return RunFolder(target)


def wherever(folder: RunFolder) -> RunFolder:
    """Return the folder of a run where it is now: in the trash if it was moved there, else where it was."""
    there = RunFolder(folder.path.parent / TRASH / folder.id)
    return there if not folder.path.is_dir() and there.path.is_dir() else folder


def trashed(runs_dir: str | Path | None = None) -> list[RunFolder]:
    """Return deleted runs, by id."""
    root = trash_folder(runs_dir)
    return [RunFolder(root / run_id) for run_id in sorted(run_ids(root))]


def empty(runs_dir: str | Path | None = None) -> int:
    """Remove deleted runs for good; returns how many.

    Raises:
        RunError: something could not be removed; what is left stays in the trash.
    """
    found = trashed(runs_dir)
    try:
        for folder in found:
            shutil.rmtree(folder.path)
    except OSError as error:
        raise RunError(f"run '{folder.id}' could not be removed from the trash: {error}") from None
    return len(found)


def _kept(root: Path) -> Path:
    path = root / TRASH
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise RunError(f"{path} cannot be made: {error}") from None
    # A planted link would carry runs out of the runs folder.
    if path.is_symlink():
        raise RunError(f"{path} is a link, which runs are not moved through; remove it")
    return path


def _move(path: Path, target: Path) -> None:
    try:
        path.rename(target)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            raise RunError(f"there is a run of the same id in {target.parent} already; rename or remove that") from None
        raise RunError(f"run '{path.name}' cannot be moved to {target.parent}: {error}") from None
