"""The plan of an execution that chose its knobs by measuring, as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COLUMNS = ("knob", "value", "step time beside defaults", "memory", "taken", "why")


def plan_rows(plan: Any) -> list[tuple[str, ...]]:
    """Return one row per trial of what ``environment.json`` holds under ``plan``; none for anything else.

    Example:
        >>> plan_rows({"trials": [{"knob": "recompute", "value": "layers", "time": 1.31, "memory_gib": 0.5,
        ...     "taken": True, "why": "least memory within the price"}]})
        [('recompute', 'layers', '1.31x', '0.50 GiB', 'yes', 'least memory within the price')]
    """
    trials = plan.get("trials") if isinstance(plan, Mapping) else None
    rows: list[tuple[str, ...]] = []
    for trial in trials if isinstance(trials, (list, tuple)) else ():
        if isinstance(trial, Mapping):
            time, gib = trial.get("time"), trial.get("memory_gib")
            rows.append(
                (
                    str(trial.get("knob", "")), str(trial.get("value", "")),
                    f"{time:.2f}x" if isinstance(time, (int, float)) else "-",
                    f"{gib:.2f} GiB" if isinstance(gib, (int, float)) else "-",
                    "yes" if trial.get("taken") else "no", str(trial.get("why", "")),
                )
            )  # fmt: skip
    return rows
