"""How a supervisor waits for its run's turn: it looks, and it obeys a stop. Standard library only."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress

from workbench.launchers.queue.turn import Turn
from workbench.store import control
from workbench.store.folder import RunFolder
from workbench.store.state import write_state

LOOK_SECONDS = 0.2
WAITING = "waiting for its turn on this machine"
STOPPED = "taken out of the queue before it began"
ABANDONED = "the process that launched this run has ended"


def mark_waiting(folder: RunFolder, turn: Turn) -> None:
    """Have the state of a run say that it waits, where it does.

    Raises:
        OSError: it cannot be written.
    """
    if not turn.running:
        write_state(folder, status="queued", message=WAITING)


def wait_for_turn(folder: RunFolder, lock: int, turn: Turn, abandoned: Callable[[], bool]) -> str:
    """Wait until the run may train; returns nothing then, else why it will not: :data:`STOPPED`, and by whom, or
    :data:`ABANDONED`.

    Args:
        lock: descriptor of the run's lock.
        abandoned: whether the process that the run is tied to has ended.
    """
    if turn.claim():
        return ""
    while not turn.claim():
        # Deleted or moved away with its folder: nothing of it is to come back.
        if os.fstat(lock).st_nlink == 0 or not folder.lock.exists():
            return STOPPED
        if abandoned():
            return ABANDONED
        if why := obeyed_stop(folder):
            return why
        # Whoever comes later looks less often: a hundred that wait must not take cores from the one that trains.
        time.sleep(LOOK_SECONDS * min(turn.position, 10))
    with suppress(OSError):
        write_state(folder, status="starting", message="starting")
    return ""


def obeyed_stop(folder: RunFolder) -> str:
    """Answer a stop; why the run ends then, else empty. Anything else that was asked waits for the trainer."""
    for request in control.pending(folder):
        if request.verb == "stop":
            refused = control.refusal(folder, request)
            with suppress(OSError):
                control.answer(folder, request.id, not refused, refused or STOPPED)
            if not refused:
                return f"{STOPPED}, by {request.by or 'somebody'}"
    return ""
