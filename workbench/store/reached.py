"""The progress of a run, whatever became of it: steps, tokens and seconds of one moment. Standard library only.

A trainer writes its state once a second and telemetry ten times as often. One that is killed leaves a state that is
behind its curves; then the last record counts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.base.errors import RunError
from workbench.base.json_lines import finite, number, parsed
from workbench.store.folder import RunFolder, read_object
from workbench.store.state import RunState, actual_status
from workbench.telemetry.streams import Record, stream_path

MOST_BYTES_PER_LINE = 1 << 12
"""On average; more is not read: a progress bar may fill gigabytes without a line end."""


def tail(path: Path, lines: int, start: int = 0) -> str:
    """Return the last ``lines`` lines of a file after byte ``start``; empty when there is no file."""
    try:
        with path.open("rb") as file:
            file.seek(max(start, file.seek(0, 2) - lines * MOST_BYTES_PER_LINE))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:]) if lines > 0 else ""


def known_rank(folder: RunFolder, rank: int) -> int:
    """Return the number of a process of a run, if it has printed to a log; 0 is the first one.

    Raises:
        RunError: there is none of that number; the message names those that there are.
    """
    if rank and not folder.log_of(rank).exists():
        numbers = (path.stem.removeprefix("worker-") for path in folder.path.glob("worker-*.log"))
        known = ", ".join(map(str, [0, *sorted(int(each) for each in numbers if each.isdigit())]))
        raise RunError(f"run '{folder.id}' has no process {rank}; it has {known}")
    return rank


COUNTED = {"steps": "step", "tokens": "tokens", "seconds": "seconds"}
"""Units of a budget, and what counts them in a state, a record and a checkpoint."""
# Between two records of a loss lie at most a few evaluations.
_RECORDS = 20


def reached(folder: RunFolder, state: RunState, status: str | None = None) -> RunState:
    """Return a state with the actual status and the numbers of the last step known.

    Args:
        state: a reading of it.
        status: what is true now (:func:`workbench.store.state.actual_status`), to save a second look. While a run is
            alive, and once its end is written down, its state says where it stands.
    """
    status = status or actual_status(folder, state)
    return replace(state, status=status, **(beyond(folder, state) if status == "lost" else {}))


def beyond(folder: RunFolder, state: RunState) -> dict[str, Any]:
    """Return the counters of a dead run's last record, for its state; empty where the state has them."""
    records = _last_records(folder)
    last = records[-1] if records else {}
    at = {name: number(last.get(name)) for name in COUNTED.values()}
    if not all(map(math.isfinite, at.values())) or at["step"] <= state.step:
        return {}
    losses = [finite(record["loss"]) for record in records if "loss" in record]
    share = budget_share(read_object(folder.recipe).get("budget"), at)
    return {
        "step": int(at["step"]),
        "tokens": int(at["tokens"]),
        "seconds": at["seconds"],
        "progress": min(share, 1.0) if math.isfinite(share) else state.progress,
        "loss": losses[-1] if losses else state.loss,
    }


def budget_share(budget: Any, at: Mapping[str, float]) -> float:
    """Return the spent part of a budget (``amount`` and ``unit``, as ``recipe.json`` has them); NaN: nobody knows.

    Args:
        at: ``step``, ``tokens`` and ``seconds``.
    """
    known = budget if isinstance(budget, Mapping) else {}
    spent = at.get(COUNTED.get(str(known.get("unit")), ""), math.nan)
    return spent / (number(known.get("amount")) or math.nan)


def _last_records(folder: RunFolder) -> list[Record]:
    """Return the last scalars of the newest attempt, oldest first."""
    lines = tail(stream_path(folder.telemetry, "scalars"), _RECORDS).encode()
    newest_first = itertools.takewhile(lambda record: "rewind" not in record, reversed(parsed(lines)))
    return list(newest_first)[::-1]
