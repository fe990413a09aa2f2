"""Where a run that has ended goes on when it is resumed. Standard library only."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from workbench.base.json_lines import finite, number
from workbench.store.checkpoints import STATE, checkpoints
from workbench.store.evaluations import read_evaluations
from workbench.store.folder import RunFolder, read_object
from workbench.store.reached import COUNTED, budget_share
from workbench.store.state import read_state


def resume_point(folder: RunFolder) -> Path | None:
    """The checkpoint that a resume goes on from (unverified): the newest, or the one that the failed attempt named."""
    named = read_state(folder).resume_step
    found = {path.name: path for path in checkpoints(folder.checkpoints)}
    return found.get(f"step-{named}") or next(reversed(found.values()), None)


def resuming(folder: RunFolder) -> str:
    """What a resume does, in words."""
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
