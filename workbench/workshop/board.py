"""Everything that a teacher looks at, from the files of a runs folder: runs by owner, lessons, tasks. No torch."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from workbench.base.text import many, plain
from workbench.client.comparison import losses_apart
from workbench.lessons.record import FOLDER as LESSONS
from workbench.lessons.record import Record, records
from workbench.store.folder import RunFolder
from workbench.store.state import FINAL
from workbench.store.view import RunView
from workbench.workshop.task import entries, tasks

_FACTS = ("id", "name", "status", "progress", "heldout_loss", "message", "launched", "queue_position")
_ORDER = ("running", "stalled", "stopping", "paused", "starting", "queued")
"""States of a run that is under way, the one to look at first; then those that have ended."""
MOST_RUNS = 20
"""Runs of an owner on the board; its list of runs has all of them."""
Row = Mapping[str, Any]


def board(root: Path, rows: Sequence[Row]) -> dict[str, Any]:
    """Return the board of a runs folder.

    Args:
        root: the runs folder. rows: of its runs, as :class:`workbench.client.listing.Listing` has them.

    Returns:
        ``owners``: of each its ``runs``, the one to look at first (at most :data:`MOST_RUNS`), how many ``train``,
        ``wait`` and have ``ended``, and the ``best`` held-out loss in nats of those that finished, None where their
        losses do not compare (:func:`workbench.client.comparison.losses_apart`); ``lessons``: questions and what each
        learner answered; ``tasks``: with their ``entries``; ``notes``: sentences on what is wrong or missing.
    """
    owners = _owners(root, rows)
    notes = _namesakes(root, rows)
    if not rows:
        notes.append(f"no runs in {root} yet: `wb.launch(...)` or a Lab starts one, and it stands here at once")
    return {"owners": owners, "lessons": _lessons(root), "tasks": _tasks(root), "notes": notes}


def _owners(root: Path, rows: Iterable[Row]) -> list[dict[str, Any]]:
    by: dict[str, list[Row]] = {}
    for row in rows:
        by.setdefault(str(row["owner"]), []).append(row)
    found = []
    for owner, own in sorted(by.items(), key=lambda each: each[0].casefold()):
        # Within a state they stay as rows are: the newest first.
        shown = sorted(own, key=lambda row: _ORDER.index(row["status"]) if row["status"] in _ORDER else len(_ORDER))
        waits = sum(row["status"] == "queued" for row in own)
        ended = sum(row["status"] in FINAL for row in own)
        found.append({
            "owner": plain(owner), "runs": [{fact: row[fact] for fact in _FACTS} for row in shown[:MOST_RUNS]],
            "train": len(own) - waits - ended, "wait": waits, "ended": ended, "best": _best(root, own),
            "lost": _lost(own),
        })  # fmt: skip
    return found


def _best(root: Path, own: Iterable[Row]) -> float | None:
    """Return the lowest loss of finished runs; None where their losses do not compare."""
    scored = [row for row in own if row["status"] == "finished" and isinstance(row["heldout_loss"], float)]
    folders = [RunFolder(root / row["id"]) for row in scored]
    references = [RunView.read(folder, telemetry=False).references for folder in folders]
    apart, _ = losses_apart(folders, references)
    return None if apart else min((row["heldout_loss"] for row in scored), default=None)


def _lost(own: Iterable[Row]) -> int:
    return sum(row["status"] in ("failed", "lost") for row in own)


def _namesakes(root: Path, rows: Iterable[Row]) -> list[str]:
    """Return a sentence for each name under which several accounts of this machine launch runs."""
    accounts: dict[str, set[int]] = {}
    for row in rows:
        with suppress(OSError):
            accounts.setdefault(str(row["owner"]), set()).add(_account_of(root / row["id"]))
    return [
        f"{len(uids)} accounts launch runs as '{plain(owner)}': each sets $WORKBENCH_OWNER to a name of its own"
        for owner, uids in sorted(accounts.items())
        if len(uids) > 1
    ]


def _account_of(run: Path) -> int:
    return os.stat(run).st_uid


def _lessons(root: Path) -> list[dict[str, Any]]:
    try:
        names = sorted(entry.name for entry in os.scandir(root / LESSONS) if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []
    found = ((name, records(root, name)) for name in names)
    return [_lesson(name, each) for name, each in found if each]


def _lesson(name: str, of: Sequence[Record]) -> dict[str, Any]:
    """Return one lesson: a column for each prediction and check, a row for each learner."""
    predicted = {key: each for one in of for key, each in one.predictions.items()}
    checked = {key: each for one in of for key, each in one.checks.items()}
    columns = [{"key": key, "question": each.question, "unit": each.unit} for key, each in predicted.items()]
    columns += [{"key": key, "question": each.question, "unit": ""} for key, each in checked.items()]
    learners = []
    for one in of:
        cells: list[dict[str, Any] | None] = [
            None if key not in one.predictions
            else one.predictions[key].model_dump(include={"value", "outcome", "right", "error"})
            for key in predicted
        ]  # fmt: skip
        cells += [
            None if key not in one.checks else one.checks[key].model_dump(include={"tries", "right"})
            for key in checked
        ]  # fmt: skip
        learners.append({"learner": one.learner, "cells": cells})
    return {"lesson": name, "columns": columns, "learners": learners}


def _tasks(root: Path) -> list[dict[str, Any]]:
    found = []
    for task in tasks(root):
        listed = [{name: value for name, value in asdict(each).items() if name != "recipe"}
                  for each in entries(root, task)]  # fmt: skip
        found.append({**asdict(task), "budget": task.budget, "entries": listed})
    return found


def cell_text(cell: Mapping[str, Any] | None, unit: str = "") -> str:
    """Return a learner's answer in words.

    Example:
        >>> cell_text({"value": "B", "outcome": "A", "right": False, "error": None})
        'B, came out A: wrong'
        >>> cell_text({"value": 3.0, "outcome": 2.5, "right": None, "error": 0.5}, "nats")
        '3 nats, came out 2.5: 0.5 too high'
        >>> cell_text({"tries": 2, "right": True})
        'right at try 2'
    """
    if cell is None:
        return ""
    if "tries" in cell:
        return (
            f"right at try {cell['tries']}"
            if cell["right"]
            else f"not right yet, after {many(cell['tries'], 'answer')}"
        )
    said = _value(cell["value"]) + (f" {unit}" if unit else "")
    if cell["outcome"] is None:
        return said
    error = cell["error"]
    if error is None:
        ending = "right" if cell["right"] else "wrong"
    else:
        ending = "exact" if not error else f"{abs(error):.3g} too {'high' if error > 0 else 'low'}"
    return f"{said}, came out {_value(cell['outcome'])}: {ending}"


def _value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else plain(value, 40)
