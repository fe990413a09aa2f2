"""What a run achieved, from its folder alone."""

from __future__ import annotations

from typing import Any

from workbench.errors import RunError
from workbench.runs.folder import RunFolder, read_object
from workbench.runs.state import actual_status, read_state


def result_of(folder: RunFolder) -> dict[str, Any]:
    """``run, state`` and the result of ``evaluations.json`` (losses in nats).

    A run that was stopped before it could evaluate anything has only what its state says.

    Raises:
        RunError: it has no result (yet).
    """
    state = read_state(folder)
    status = actual_status(folder, state)
    result = read_object(folder.evaluations).get("result")
    if not isinstance(result, dict):
        if status != "stopped":
            raise RunError(f"run '{folder.id}' has no result: it is {status}")
        result = {
            "steps": state.step,
            "tokens": state.tokens,
            "seconds": round(state.seconds, 3),
            "tokens_per_second": state.tokens_per_second,
            "train_loss": state.loss,
            "heldout_loss": state.heldout_loss,
        }
    return {"run": folder.id, "state": status, **result}
