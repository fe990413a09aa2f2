"""Start the trainer of a run that has ended again, from its last checkpoint."""

from __future__ import annotations

import time

from workbench.base.errors import RunError
from workbench.launchers import launcher_named
from workbench.launchers.launcher import begin
from workbench.store.folder import RunFolder, read_object
from workbench.store.in_process import refuse_elsewhere
from workbench.store.state import RunState, read_state

SURELY_SILENT_SECONDS = 60.0
"""Without a sign of life, after which a run of another machine trains no more."""


def restart(folder: RunFolder, state: RunState) -> str:
    """Begin the next attempt of a run that has ended before its budget; returns what was done.

    Args:
        state: of the run, with its actual status.

    Raises:
        RunError: it cannot be started from here, or somebody else has just started it.
    """
    refuse_elsewhere(folder, "resume")
    # Its lock may be one that a file server does not show to others, and two must never train one run.
    if state.status == "lost" and state.elsewhere and abs(time.time() - state.heartbeat) < SURELY_SILENT_SECONDS:
        raise RunError(
            f"run '{folder.id}' trained on {state.host} a moment ago, and whether it still does cannot be seen from "
            f"here; resume it there, or {SURELY_SILENT_SECONDS:.0f} s after its last sign of life"
        )
    on = read_object(folder.launched).get("on")
    # A run that was tied to a process that is gone goes on by itself.
    launcher = launcher_named("local" if on in (None, "inline") else str(on))
    lock = begin(folder, attempt=state.attempt + 1)
    said = [f"{read_state(folder).message}, attempt {state.attempt + 1}"]
    launcher.submit(folder, lock, resume=True, say=said.append)
    return "; ".join(said)
