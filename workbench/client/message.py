"""What a run has to say now, in a sentence: its own words, or what is true of it while it cannot speak."""

from __future__ import annotations

from workbench.launchers.queue.outlook import queued_text
from workbench.store.folder import RunFolder
from workbench.store.state import STALLED, RunState, silent_seconds


def message_of(folder: RunFolder, state: RunState, status: str) -> str:
    """What a run that is in ``status`` (:func:`workbench.store.state.actual_status`) has to say."""
    if status == "queued":
        return queued_text(folder, state)
    if status != STALLED:
        return state.message
    # In steps of 5 s: whoever shows only what has changed is not kept busy by it.
    seconds = 5 * int(silent_seconds(state) // 5)
    return (
        f"no sign of life for {seconds} s: process {state.pid} is suspended, swapped out or waiting for a disk; the "
        "run goes on by itself once that is over"
    )
