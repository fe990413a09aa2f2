"""All runs that a server shows, for a list beside the notebooks: which train, which wait, what they have reached."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

from workbench.client.listing import Listing
from workbench.jupyter.feed.registered_roots import key_of
from workbench.jupyter.server.registered_runs import HERE, Places, Refused, hold
from workbench.store.folder import RunFolder
from workbench.store.state import FINAL

MOST = 200
"""Runs of one answer: those under way and the newest of the others."""
# What waits stands below what trains: it has nothing to tell yet.
_LAST = ("queued", *FINAL)
_FACTS = (
    "id", "name", "status", "progress", "step", "loss", "heldout_loss", "tokens_per_second", "message", "launched",
    "started", "experiment", "queue_position", "expected_start_seconds",
)  # fmt: skip


class AllRuns:
    """The runs of every listed place, read as they change; safe to ask from several threads."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._listings: dict[Path, Listing] = {}
        self._lock = threading.Lock()

    def look(self, most: int = MOST) -> dict[str, Any]:
        """Return runs that train, then those that wait, then those that have ended, each newest first. Reads files.

        Args:
            most: of them all. Of each folder, what trains or waits and :data:`workbench.client.listing.MOST`
                are known: others are in no count either.

        Returns:
            ``runs``: of each ``run`` (its name at the server), ``kernels`` (what kernels call it, as
            :func:`workbench.jupyter.steering.place_of` has it), ``place`` (words, empty for the server's own folder),
            ``group`` (of a race, sweep or tuning; empty for any other run) and facts of
            :func:`workbench.client.summary.summary`; ``groups``: of each group among them, how many of its
            runs are known by status; ``counts``: the same of all runs.

        Raises:
            OSError: a runs folder cannot be read.
        """
        rows = []
        for place, root in self._places.listed().items():
            words, key = self._words(place, root), key_of(root)
            for row in self._listing(root).look().rows:
                # Two folders may hold experiments of one name and moment.
                group = row["experiment"] and f"{place}/{row['experiment']}"
                names = {"run": f"{place}/{row['id']}", "kernels": f"{key}/{row['id']}", "place": words, "group": group}
                rows.append(names | {fact: row[fact] for fact in _FACTS})
        rows.sort(key=lambda row: (row["launched"] or 0.0, row["id"]), reverse=True)
        rows.sort(key=lambda row: (row["status"] in _LAST, row["status"] in FINAL))
        told = {row["group"] for row in rows[:most] if row["group"]}
        groups: dict[str, Counter[str]] = {group: Counter() for group in told}
        for row in rows:
            if row["group"] in told:
                groups[row["group"]][row["status"]] += 1
        return {"runs": rows[:most], "groups": groups, "counts": Counter(row["status"] for row in rows)}

    def _words(self, place: str, root: Path) -> str:
        # A path within what the server shows anyway; where it lies on the machine is none of the page's business.
        within = self._places.within
        return "" if place == HERE or within is None else str(root.resolve().relative_to(within.resolve()))

    def _listing(self, root: Path) -> Listing:
        with self._lock:
            return self._listings.setdefault(root, Listing(root, _admitted))


def _admitted(folder: RunFolder) -> bool:
    try:
        hold(folder)
    except (OSError, Refused):
        return False
    return True
