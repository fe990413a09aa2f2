"""The limit on the seconds that one run may train on this machine, for rooms in which many wait for a turn."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from workbench.base.errors import RunError
from workbench.launchers.queue.queue_folder import queue_here
from workbench.store import control
from workbench.store.folder import RunFolder
from workbench.store.state import read_state

_LOOK_SECONDS = 1.0


def check_seconds(budget: Any) -> None:
    """Refuse a budget in seconds beyond what one run may train here; one in steps or tokens is stopped in time.

    Args:
        budget: of a recipe.

    Raises:
        RunError: it is longer.
    """
    limit = _seconds_per_run()
    if limit is not None and budget.unit == "seconds" and budget.amount > limit:
        raise RunError(
            f"budget: {budget}, and a run on this machine may train {limit} s; give it a smaller budget, or "
            "raise seconds_per_run (`workbench queue set`)"
        )


class SecondsLimit:
    """Ask a run to stop, once, when it has trained as long as a run may on this machine.

    Args:
        folder: of the run.
    """

    def __init__(self, folder: RunFolder) -> None:
        self._folder, self._next, self._asked = folder, 0.0, False

    def look(self) -> None:
        """Look at most once a second, and ask the run where its time is up."""
        if self._asked or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _LOOK_SECONDS
        limit = _seconds_per_run()
        if limit is None:
            return
        state = read_state(self._folder)
        if state.status == "running" and state.seconds - state.seconds_before >= limit:
            why = f"stopped after {limit} s, as long as a run may train on this machine (seconds_per_run)"
            with suppress(RunError):
                control.send(self._folder, "stop", take_over=True, by="the queue", why=why)
                self._asked = True


def _seconds_per_run() -> int | None:
    queue = queue_here()
    return None if queue is None else queue.settings().seconds_per_run
