"""Runs that wait and that no process holds: after a reboot, or where somebody killed the process that waited.

Each is started again as its launch left it, with its own Python and settings; of several who do so at once, one does.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from workbench.base.errors import RunError
from workbench.launchers.launched import Launched
from workbench.launchers.queue.queue_folder import queue_here
from workbench.launchers.queue.ticket import ticket_of
from workbench.launchers.queue.turn import give_up, obeyed_stop
from workbench.store.find import run_ids
from workbench.store.folder import RunFolder
from workbench.store.state import launcher_says, lock_held, process_identity, read_state, take_lock, write_state


def is_orphan(folder: RunFolder) -> bool:
    """Return True if a run waits on this machine and no process of it is there, or will come."""
    return _waits_alone(folder) and not launcher_says(folder)


def _waits_alone(folder: RunFolder) -> bool:
    state = read_state(folder)
    # In a shared folder it may wait on another machine, whose locks are not always seen here.
    return state.status == "queued" and not state.elsewhere and not lock_held(folder)


def orphans(root: Path | None = None) -> list[RunFolder]:
    """Return this user's runs that wait without a process and can be started again, in the order of entering.

    Args:
        root: a runs folder to look through as well, where the queue has forgotten its runs.
    """
    queue = queue_here()
    tickets = [] if queue is None else sorted(queue.tickets(), key=lambda each: each.number)
    known = {each.folder: each.run for each in tickets if not each.alive and each.uid == os.getuid()}
    if root is not None:
        known |= {str(root / each): RunFolder(root / each) for each in sorted(run_ids(root))}
    # What was tied to a process ended with it.
    return [each for each in known.values() if is_orphan(each) and Launched.read(each).on == "local"]


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
    from workbench.launchers.launcher import launcher_of

    with _held(folder) as waits:
        if not waits:
            return False
        write_state(folder, **process_identity())
        before = Launched.read(folder)
        # Says that a supervisor is coming, until its handle is there.
        launched = replace(before, time=time.time(), handle={})
        launched.write(folder)
    # Without the lock, which the supervisor takes.
    try:
        # A fork begins with a checkpoint.
        resume = read_state(folder).attempt > 1 or folder.origin.exists()
        launched.write(folder, launcher_of(folder).submit(folder, resume))
    except (RunError, OSError):
        before.write(folder)
        raise
    return True


def withdraw(folder: RunFolder) -> bool:
    """Obey a stop of a run that waits without a process; False where none was asked, or a process of it is there."""
    from workbench.launchers.launcher import launcher_of

    with _held(folder, sure=False) as waits:
        if not waits or not (why := obeyed_stop(folder)):
            return False
        write_state(folder, status="stopped", message=why)
    give_up(ticket_of(folder))
    with suppress(RunError):
        launcher_of(folder).cancel(Launched.read(folder).handle)
    return True


@contextmanager
def _held(folder: RunFolder, *, sure: bool = True) -> Iterator[bool]:
    """Hold the lock of a run that waits without a process; False where it does not wait, or somebody else is there.

    Args:
        sure: also False while its launcher says that a process is coming.
    """
    if not (is_orphan(folder) if sure else _waits_alone(folder)):
        yield False
        return
    try:
        lock = take_lock(folder, 0.2)
    except RunError:
        yield False
        return
    try:
        yield read_state(folder).status == "queued"
    finally:
        os.close(lock)
