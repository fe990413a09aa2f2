"""A run that gives way: it keeps a checkpoint, ends, and waits for its launcher to start it again.

A cluster takes nodes away for a more urgent job, at the end of a job's time, or because they are broken. None of these
is an end of the run: it is ``queued`` from then on, and nobody who waits for its end hears of one.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from workbench.base.errors import RunError
from workbench.launchers.create import open_attempt
from workbench.launchers.launched import Launched
from workbench.store import control
from workbench.store.folder import RunFolder
from workbench.store.state import RunState, read_state, take_lock, write_state
from workbench.telemetry.streams import add_event

AGAIN = 75
"""Exit code of a supervisor that is to be started again, ``EX_TEMPFAIL`` of sysexits."""
CHECKPOINT_SECONDS = 600.0
"""Longest wait for the checkpoint; whoever takes the node away kills the run sooner."""
DYING_SECONDS = 60.0
"""Longest wait for the lock of a run whose processes are dying."""
OTHERS_SECONDS = 10.0
"""For how long a run that another machine seems to have left is looked at: a trainer gives a sign of life a second."""


class GivingWay:
    """Room that a supervisor makes for others: its run pauses, and goes on later.

    Attributes:
        why: it does; empty where it does not.
    """

    def __init__(self, folder: RunFolder) -> None:
        self.why = ""
        self._folder, self._request, self._until = folder, "", 0.0

    def asked(self, number: int) -> str:
        """Return why the run gives way to a signal; empty where whoever ends this process means to end the run."""
        if number == signal.SIGUSR1:
            return "the time of its job was nearly up"
        # On first use: a supervisor of this machine's own loads no pydantic.
        from workbench.launchers.launcher import launcher_of

        with suppress(RunError):
            return launcher_of(self._folder).takes_back()
        return ""

    def begin(self, why: str) -> None:
        """Ask the trainer for a checkpoint, once."""
        if not self.why:
            self.why, self._until = why, time.monotonic() + CHECKPOINT_SECONDS
            with suppress(RunError):
                self._request = control.send(self._folder, "checkpoint", take_over=True, by="the cluster")

    def ready(self) -> bool:
        """Return True once the trainer may be ended: it has kept a checkpoint, or has none to keep yet."""
        if not self.why:
            return False
        answer = control.outcome(self._folder, self._request) if self._request else None
        begun = read_state(self._folder).status in ("running", "paused", "stopping")
        return not begun or time.monotonic() > self._until or bool(answer and answer.get("done") is not None)

    def write(self, lock: int) -> int:
        """Write down that the run waits for its next attempt; returns the exit code.

        Args:
            lock: descriptor of the run's lock.
        """
        folder = self._folder
        state = read_state(folder)
        if state.final and state.status != "failed":
            return 0
        if os.fstat(lock).st_nlink == 0:
            return 1
        with suppress(OSError):
            add_event(folder.telemetry, state.step, "requeue", f"attempt {state.attempt} gave way: {self.why}")
        waiting = f"waiting in {Launched.read(folder).handle.get('where') or 'its cluster'}: {self.why}"
        # First, since the attempt before was not lost. The next one begins now, so that it goes on from the checkpoint
        # wherever it is started.
        write_state(folder, status="queued", message=waiting)
        open_attempt(folder, state.attempt + 1, waiting)
        return AGAIN


def still_trained(folder: RunFolder, state: RunState) -> bool:
    """Return True if a run is trained on another machine, whose lock this one does not see.

    Args:
        state: as the process that holds the lock here found it.
    """
    # Before a trainer's first sign of life the state is that of whoever launched it.
    if state.final or state.status == "queued" or not (state.elsewhere and state.heartbeat_monotonic):
        return False
    deadline = time.monotonic() + OTHERS_SECONDS
    while time.monotonic() < deadline:
        if read_state(folder).heartbeat != state.heartbeat:
            return True
        time.sleep(0.2)
    return False


def wait_again(folder: RunFolder, why: str) -> bool:
    """Have the state of a run say that it waits, where all of its processes died while it trained.

    Args:
        why: they died.

    Returns:
        True if the run waits for its next attempt.

    Raises:
        RunError: a process of it is there.
    """
    state = read_state(folder)
    # Before a trainer's first sign of life, another start would end as this one.
    if state.final or not state.heartbeat_monotonic:
        return state.status == "queued"
    while still_trained(folder, state):
        state = read_state(folder)
    lock = take_lock(folder, DYING_SECONDS)
    try:
        if not read_state(folder).final:
            way = GivingWay(folder)
            way.why = why
            way.write(lock)
        return read_state(folder).status == "queued"
    finally:
        os.close(lock)
