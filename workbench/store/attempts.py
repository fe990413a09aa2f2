"""Of which attempts a run consists: what its events say where one begins, or has ended without a word.

An attempt that could say why it ended did so itself, and of one whose trainer was killed its supervisor did. Standard
library only.
"""

from __future__ import annotations

from typing import Any

from workbench.base.text import utc
from workbench.store.folder import RunFolder
from workbench.store.reached import reached
from workbench.store.resume_counters import resume_counters, resuming
from workbench.store.state import RunState, actual_status
from workbench.telemetry.streams import Record, add_event


def lost_event(folder: RunFolder, state: RunState) -> Record | None:
    """How the latest attempt of a run was lost, as an event of its last step; None where it was not.

    Args:
        state: a reading of it.
    """
    if actual_status(folder, state) != "lost":
        return None
    return _lost(folder, state)


def tell_attempt(folder: RunFolder, state: RunState) -> None:
    """Have the events of a run say that another attempt begins, and how the one before was lost, if it was.

    Args:
        state: as the attempt before left it. Its lock is held by the caller, who has not changed the state yet.

    Raises:
        OSError: the folder cannot be written to.
    """
    if not state.final and state.status != "queued":
        lost = _lost(folder, state)
        add_event(folder.telemetry, lost["step"], lost["kind"], lost["text"])
    step = resume_counters(folder).get("step", state.step)
    add_event(folder.telemetry, step, "attempt", f"attempt {state.attempt + 1} begins; {resuming(folder)}")


def _lost(folder: RunFolder, state: RunState) -> dict[str, Any]:
    step = reached(folder, state, "lost").step
    last = f"; last sign of life {utc(state.heartbeat)} UTC" if state.heartbeat else ""
    text = f"attempt {state.attempt} was lost at step {step:,}: all of its processes ended without saying why{last}"
    return {"step": step, "kind": "error", "text": text, "time": state.heartbeat or None}
