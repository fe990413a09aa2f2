"""Runs that train in the Python process that holds their model and data (``workbench.accelerate``): how they go on."""

from __future__ import annotations

from workbench.base.errors import RunError
from workbench.store.checkpoints import has_checkpoint
from workbench.store.folder import RunFolder, read_object
from workbench.store.state import read_state

IN_PROCESS = "accelerate"
"""The launcher that ``launched.json`` of such a run names."""
_AFTER_THE_END = {
    "evaluate": "`workbench runs` lists the score at its end",
    "profile": "it was not profiled; `workbench train --profile` profiles the first steps of a run",
}


def is_in_process(folder: RunFolder) -> bool:
    """Return True if a run's model and data are objects of a Python process."""
    return read_object(folder.launched).get("on") == IN_PROCESS


def refuse_elsewhere(folder: RunFolder, verb: str) -> None:
    """Refuse to start a run that cannot be started from its folder alone.

    Args:
        verb: what was asked for.

    Raises:
        RunError: it is a copy of a run elsewhere, or its model and data are objects of a Python process; the message
            says how to give them again.
    """
    if afar := read_state(folder).afar:
        raise RunError(f"run '{folder.id}' cannot {verb} here: this is a copy of {afar}; it can where that folder is")
    if not is_in_process(folder):
        return
    way = f"{_again(folder)} goes on with the same model and loader"
    if read_state(folder).status == "finished":
        way = (
            f"`workbench.Run('{folder.id}').load_into(model)` loads its weights, with which "
            "`workbench.accelerate(model, loader)` begins a new run"
        )
    raise RunError(
        f"run '{folder.id}' cannot {verb} here: its model and data were objects of a Python program; in Python, {way}"
    )


def way_on(folder: RunFolder, status: str, verb: str = "") -> str:
    """Return how a run that has ended goes on, as the end of a sentence; empty for one that is finished.

    Args:
        verb: of a request to it; of a finished one it is said where the answer stands, if it stands anywhere.
    """
    if status == "finished":
        known = _AFTER_THE_END.get(verb, "")
        return known and f"; {known}"
    if read_state(folder).repeats:
        return "; a resume would only repeat what failed: change the recipe, and launch or fork that"
    return f"; {resume_text(folder)}"


def resume_text(folder: RunFolder) -> str:
    """Return what a resume of a run that has ended will do, and how to ask for it."""
    do = _again(folder) if is_in_process(folder) else f"`workbench resume {folder.id}`"
    if has_checkpoint(folder.checkpoints):
        return f"{do} goes on from its last checkpoint"
    return f"it left no checkpoint: {do} starts its recipe from the beginning"


def _again(folder: RunFolder) -> str:
    return f"`workbench.accelerate(model, loader, resume='{folder.id}')`"
