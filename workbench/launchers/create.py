"""A run folder begins: a new one, written aside and moved into place whole, or another attempt of one that has ended.

:func:`create` and :func:`begin` give back the run's lock; :func:`start` lets go of it and has a launcher bring the
supervisor to life, which takes it again. In between the launch in ``launched.json`` says that the run is alive
(:func:`workbench.launchers.launcher.alive`), and the attempt in ``state.json`` keeps a second launch out.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.base.errors import RunError
from workbench.launchers.launched import Launched, working_folder
from workbench.store import control
from workbench.store.attempts import resume_counters, resuming, tell_attempt
from workbench.store.folder import RunFolder, new_run_id, write_json
from workbench.store.full_disk import fill_reserve
from workbench.store.in_process import refuse_elsewhere
from workbench.store.state import RunState, process_identity, read_state, take_lock, write_state

if TYPE_CHECKING:
    from workbench.launchers.launcher import Launcher
    from workbench.recipes.recipe import Recipe

Log = Callable[[str], None]
"""Takes a line for people."""
# A run that was just stopped lets go of its lock only after its last status is written and its workers are gone.
RESUME_PATIENCE_SECONDS = 10.0
SURELY_SILENT_SECONDS = 60.0
"""Without a sign of life, after which a run of another machine trains no more."""

# A clash takes the same recipe, second and random number: eight in a row mean that something else is wrong.
_ID_ATTEMPTS = 8
_DRAFT = ".new-"
FORSAKEN_SECONDS = 86_400.0
"""Age at which a draft is nobody's any more: whoever made it was killed."""


def create(
    root: Path, prepare: Callable[[RunFolder], Recipe], run_id: str | None = None, launcher: Launcher | None = None
) -> tuple[RunFolder, int]:
    """Write a run folder aside, take its lock, move it into place; returns it and the lock's descriptor.

    Args:
        root: the runs folder; made when missing.
        prepare: puts into the draft what else the run begins with, and returns its recipe.
        run_id: of the run; None for a new one.
        launcher: that the run is for; None: it trains in this process.

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
        aside = root / f"{_DRAFT}{secrets.token_hex(8)}"
        aside.mkdir()
        draft = RunFolder(aside)
        draft.telemetry.mkdir()
        draft.control.mkdir()
        draft.checkpoints.mkdir()
        recipe = prepare(draft)
        # Asked by the trainer, too; here, so that it is told before there is a run.
        if launcher is None:
            recipe.check_here()
        else:
            launcher.check(recipe)
        write_json(draft.recipe, recipe.to_dict())
        needs = {"processes": getattr(launcher, "processes", 1), "threads": recipe.execution.threads}
        write_json(draft.needs, {**needs, "gpus": recipe.execution.gpus()})
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


def start(folder: RunFolder, lock: int, launcher: Launcher, *, resume: bool = False, say: Log | None = None) -> None:
    """Have a launcher bring the supervisor of a run to life (see :func:`create`, :func:`begin`).

    Args:
        lock: descriptor of the run's lock; closed here, for the supervisor to take it.
        resume: go on from the last checkpoint.
        say: called with one line where the run waits, or shares the machine.

    Raises:
        RunError: the supervisor could not be started; the run is marked failed.
    """
    try:
        try:
            place = working_folder(folder) if resume else Path.cwd()
            launched = Launched.here(launcher.kind, place, launcher.model_dump(exclude={"kind"}, exclude_defaults=True))
            launched.write(folder)
        finally:
            os.close(lock)
        handle = launcher.submit(folder, resume)
    except OSError as error:
        message = f"the supervisor of run '{folder.id}' could not be started: {error}"
        write_state(folder, status="failed", error=message)
        raise RunError(message) from None
    with suppress(OSError):
        launched.write(folder, handle)
    if say is not None and (line := launcher.notice(folder, handle)):
        say(line)


def begin(folder: RunFolder, attempt: int = 1) -> int:
    """Become responsible for a run: take its lock, mark it ``starting``; returns the lock's descriptor.

    Args:
        attempt: one more than that of the state in which the caller saw the run ended; 1 begins it.

    Raises:
        RunError: another process trains this run, or has resumed it meanwhile.
        OSError: the disk is full or the folder cannot be written to; the lock is free again.
    """
    # First of all: whoever has no lock must not touch the state of a run that goes on.
    lock = _lock_of_attempt(folder, attempt) if attempt > 1 else take_lock(folder)
    try:
        _check_attempt(folder, attempt)
        open_attempt(folder, attempt)
    except BaseException:
        # Kept, it would make the run look alive, and impossible to resume, for as long as this process lives.
        os.close(lock)
        raise
    return lock


def open_attempt(folder: RunFolder, attempt: int, waiting: str = "") -> None:
    """Have the state of a run say that an attempt begins; the caller holds its lock.

    Args:
        waiting: for what the attempt waits; empty where it starts at once.

    Raises:
        OSError: the disk is full or the folder cannot be written to.
    """
    resume = attempt > 1
    if resume:
        control.dismiss_pending(folder, "the run ended before it could answer")
        # The attempt before may have given it up; one that can train without is not refused for it.
        with suppress(OSError):
            fill_reserve(folder)
        # Before the state says otherwise; a full disk keeps no run from going on.
        with suppress(OSError):
            tell_attempt(folder, read_state(folder))
    write_state(
        folder,
        status="queued" if waiting else "starting",
        message=waiting or (resuming(folder) if resume else "starting"),
        **(resume_counters(folder) if resume else {}),
        error="",
        exit_code=None,
        repeats=False,
        # Silence is counted from the trainer's first sign of life, not from the last one of the attempt before.
        heartbeat_monotonic=0.0,
        attempt=attempt,
        **process_identity(),
    )


def restart(folder: RunFolder, state: RunState) -> str:
    """Begin the next attempt of a run that has ended before its budget; returns what was done.

    Args:
        state: of the run, with its actual status.

    Raises:
        RunError: it cannot be started from here, or somebody else has just started it.
    """
    from workbench.launchers.launcher import launcher_named, launcher_of

    refuse_elsewhere(folder, "resume")
    # Its lock may be one that a file server does not show to others, and two must never train one run.
    if state.status == "lost" and state.elsewhere and abs(time.time() - state.heartbeat) < SURELY_SILENT_SECONDS:
        raise RunError(
            f"run '{folder.id}' trained on {state.host} a moment ago, and whether it still does cannot be seen from "
            f"here; resume it there, or {SURELY_SILENT_SECONDS:.0f} s after its last sign of life"
        )
    # A run that was tied to a process that is gone goes on by itself.
    launcher = launcher_of(folder, again=True)
    if launcher.kind == "inline":
        launcher = launcher_named("local", **launcher.model_dump(exclude={"kind"}, exclude_defaults=True))
    lock = begin(folder, attempt=state.attempt + 1)
    said = [f"{read_state(folder).message}, attempt {state.attempt + 1}"]
    start(folder, lock, launcher, resume=True, say=said.append)
    return "; ".join(said)


def _lock_of_attempt(folder: RunFolder, attempt: int) -> int:
    deadline = time.monotonic() + RESUME_PATIENCE_SECONDS
    while True:
        try:
            return take_lock(folder, 0.2)
        except RunError:
            # Whoever resumes it beside us says so in the state, long before our patience ends.
            _check_attempt(folder, attempt)
            if time.monotonic() >= deadline:
                raise


def _check_attempt(folder: RunFolder, attempt: int) -> None:
    # Of several who resume a run at once the first does it: the others must not train it once more after its end.
    present = read_state(folder).attempt
    if present >= attempt > 1:
        raise RunError(f"run '{folder.id}' was resumed by somebody else a moment ago (attempt {present})")
