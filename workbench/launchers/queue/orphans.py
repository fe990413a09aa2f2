"""Runs that wait and that no process holds: after a reboot, or where somebody killed the process that waited.

Each is started again as its launch left it, with its own Python and settings; of several who do so at once, one does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from workbench.base.errors import RunError
from workbench.launchers.launch_environment import launch_environment_of
from workbench.launchers.launcher import working_folder
from workbench.launchers.local import start_supervisor
from workbench.launchers.queue.queue_folder import queue_here
from workbench.launchers.queue.ticket import ticket_of
from workbench.launchers.queue.turn import enter
from workbench.launchers.queue.waiting import obeyed_stop
from workbench.store.find import run_ids
from workbench.store.folder import RunFolder, read_object
from workbench.store.state import LOCK_VARIABLE, lock_held, process_identity, read_state, take_lock, write_state


def is_orphan(folder: RunFolder) -> bool:
    """Whether a run waits on this machine and no process of it is there."""
    state = read_state(folder)
    # In a shared folder it may wait on another machine, whose locks are not always seen here.
    return state.status == "queued" and not state.elsewhere and not lock_held(folder)


def orphans(root: Path | None = None) -> list[RunFolder]:
    """This user's runs that wait without a process and can be started from their folder, in the order of entering.

    Args:
        root: a runs folder to look through as well, where the queue has forgotten its runs.
    """
    queue = queue_here()
    tickets = [] if queue is None else sorted(queue.tickets(), key=lambda each: each.number)
    known = {each.folder: each.run for each in tickets if not each.alive and each.uid == os.getuid()}
    if root is not None:
        known |= {str(root / each): RunFolder(root / each) for each in sorted(run_ids(root))}
    # What was tied to a process ended with it.
    return [each for each in known.values() if is_orphan(each) and read_object(each.launched).get("on") == "local"]


def start_orphans(root: Path | None = None, *, unless_known: bool = False) -> list[RunFolder]:
    """Queue them again; returns those that were.

    Args:
        root: a runs folder to look through as well.
        unless_known: look there only where the queue has no folder, so that it may have forgotten its runs.
    """
    queue = queue_here()
    if unless_known and (queue is None or queue.folder.exists()):
        root = None
    started = []
    for folder in orphans(root):
        # One that cannot be started must not keep the others waiting.
        with suppress(RunError, OSError):
            if start_orphan(folder):
                started.append(folder)
    return started


def start_orphan(folder: RunFolder) -> bool:
    """Queue a run again whose process is gone, at its old place; False where it does not wait, or one is there.

    Raises:
        OSError: no process can be started.
    """
    with _held(folder) as lock:
        if lock is None:
            return False
        state = read_state(folder)
        write_state(folder, **process_identity())
        python, settings = launch_environment_of(folder)
        # A fork begins with a checkpoint.
        options = ["--resume"] if state.attempt > 1 or folder.origin.exists() else []
        turn = enter(folder)
        descriptors = {LOCK_VARIABLE: lock, **turn.descriptors}
        try:
            start_supervisor(
                folder, descriptors, working_folder(folder), options, own_session=True, python=python, settings=settings
            )
        finally:
            turn.hand_over()
        return True


def end_orphan(folder: RunFolder) -> bool:
    """Obey a stop of a run that waits without a process; False where none was asked, or a process of it is there."""
    with _held(folder) as lock:
        why = "" if lock is None else obeyed_stop(folder)
        if not why:
            return False
        write_state(folder, status="stopped", message=why)
        queue = queue_here()
        if queue is not None:
            with suppress(OSError):
                (queue.folder / ticket_of(folder).file).unlink(missing_ok=True)
        return True


@contextmanager
def _held(folder: RunFolder) -> Iterator[int | None]:
    """The lock of a run that waits without a process; None where it does not wait, or somebody else is there."""
    if not is_orphan(folder):
        yield None
        return
    try:
        lock = take_lock(folder, 0.2)
    except RunError:
        yield None
        return
    try:
        yield lock if read_state(folder).status == "queued" else None
    finally:
        os.close(lock)
