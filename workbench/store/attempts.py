"""The attempts of a run: where a resume goes on, and the events that tell of them.

An attempt that could say why it ended did so itself, and of one whose trainer was killed its supervisor did. Standard
library only.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from workbench.base.json_lines import finite, number
from workbench.base.text import utc
from workbench.store.checkpoints import STATE, checkpoints
from workbench.store.evaluations import read_evaluations
from workbench.store.folder import RunFolder, read_object
from workbench.store.reached import COUNTED, budget_share, reached
from workbench.store.state import RunState, actual_status, read_state
from workbench.telemetry.streams import Record, add_event


def resume_point(folder: RunFolder) -> Path | None:
    """Return the checkpoint for a resume (unverified): the newest, or the one that the failed attempt named."""
    named = read_state(folder).resume_step
    found = {path.name: path for path in checkpoints(folder.checkpoints)}
    return found.get(f"step-{named}") or next(reversed(found.values()), None)


def resuming(folder: RunFolder) -> str:
    """Return what a resume does, in words."""
    if (path := resume_point(folder)) is None:
        return "no checkpoint was saved: starting again from step 0"
    if path != checkpoints(folder.checkpoints)[-1]:
        return f"resuming from {path.name}, from before the change of a knob under which the run failed"
    return "resuming from the last checkpoint"


def resume_counters(folder: RunFolder) -> dict[str, Any]:
    """Return the counters of a run that is being resumed, for its state: steps that are taken again do not count.

    Empty where the attempt before ended at the checkpoint, or the checkpoint does not say where that is.
    """
    path = resume_point(folder)
    saved = {} if path is None else read_object(path / STATE)
    at = {name: 0.0 if path is None else number(saved.get(name)) for name in COUNTED.values()}
    if at["step"] == read_state(folder).step or not all(map(math.isfinite, at.values())):
        return {}
    recipe, found = read_object(folder.recipe), read_evaluations(folder).get("heldout")
    share = budget_share(recipe.get("budget"), at)
    points = [point for point in found if isinstance(point, dict)] if isinstance(found, list) else []
    heldout = [number(point.get("loss")) for point in points if 0 < number(point.get("step")) <= at["step"]]
    return {
        "step": int(at["step"]),
        "tokens": int(at["tokens"]),
        "seconds": at["seconds"],
        "progress": min(share, 1.0) if math.isfinite(share) else 0.0,
        **({"started": 0.0} if path is None else {}),
        # The trainer says the next ones.
        "loss": None,
        "tokens_per_second": None,
        "heldout_loss": finite(heldout[-1]) if heldout else None,
    }


def lost_event(folder: RunFolder, state: RunState) -> Record | None:
    """Return the loss of the latest attempt as an event of its last step; None where it was not lost.

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
