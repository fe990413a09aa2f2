"""A run in the foreground that waits for a full or read-only disk, where nobody sits who could help."""

from __future__ import annotations

import os
import sys
import time

from workbench.base.errors import FREE_SPACE
from workbench.client.run import Run
from workbench.store.in_process import way_on
from workbench.store.state import read_state

SPACE_SECONDS = 60.0
"""Seconds that such a run waits: what else runs on the machine may free space."""


def somebody_there(as_json: bool) -> bool:
    """Return True if a person may read the output and act on it; JSON is read by programs."""
    return not as_json and any(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


class WaitForSpace:
    """Count how long a run has waited for a disk it can write to; a pause that somebody asked for does not count.

    Attributes:
        message: of the run that has waited for too long; empty until then.
    """

    message = ""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._since: float | None = None

    def over(self) -> bool:
        """Return True once it has waited for :data:`SPACE_SECONDS`."""
        # As written: on a full disk a run may have no room for signs of life either.
        state = read_state(self._run.folder)
        message = state.message if state.status == "paused" and FREE_SPACE in state.message else ""
        # There its state stays as it was.
        if not message and not state.final and not os.access(self._run.folder.path, os.W_OK):
            message = f"its folder cannot be written to; {FREE_SPACE}"
        if not message:
            self._since = None
            return False
        if self._since is None:
            self._since = time.monotonic()
        if time.monotonic() - self._since < SPACE_SECONDS:
            return False
        self.message = message
        return True

    @property
    def told(self) -> str:
        """Return what was done about it and what is kept, once the run has ended."""
        run = self._run
        return (
            f"{run.id} waited {SPACE_SECONDS:g} s for space on its disk and was ended at step {run.state.step:,}, "
            f"for nobody is at a terminal to help ({self.message}); what it has recorded is kept in "
            f"{run.folder.path}{way_on(run.folder, run.status)}"
        )
