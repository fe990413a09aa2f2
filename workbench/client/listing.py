"""All runs as rows of a table that stays open: read once, and from then on only those that have changed.

Every writer here replaces files by rename, and a rename changes the modification time of the folder around it. So one
look at each run's folder tells whether anything in it is new, where reading would open four files. What that look
cannot tell is read again anyway: a folder that was changed in the tick in which it was read, one whose state could not
be read, and every now and then each of the others, for files that somebody edited in place. No torch.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.base.fields import differences
from workbench.client.summary import knobs_written, message_of, numbers, queue_facts, summary
from workbench.launchers.queue.outlook import known_here
from workbench.store.effective_knobs import EffectiveKnobs, effective_knobs
from workbench.store.find import TRASH
from workbench.store.folder import RunFolder, is_run_id, runs_root, stamp_in
from workbench.store.missing_text import NamedText
from workbench.store.reached import reached
from workbench.store.state import RunState, actual_status, read_state

MOST = 1000
"""Rows of a listing: the newest, and older ones that train or wait here; of the others the number is told."""
# File systems round times to two seconds at worst: a folder that changed later than this before it was read may have
# changed again under the same time.
_SETTLED_SECONDS = 3.0
# One in so many rows is read again at each look although nothing seems to have changed.
_AGAIN = 30
_NONE = EffectiveKnobs({}, {})


@dataclass(frozen=True)
class Listed:
    """One look at a runs folder.

    Attributes:
        rows: newest first, see :func:`workbench.client.summary.summary`.
        total: runs in the folder; those beyond ``rows`` are older, and neither train nor wait here.
        trashed: deleted runs that could be restored.
    """

    rows: list[dict[str, Any]]
    total: int
    trashed: int


@dataclass
class _Known:
    mark: tuple[int, int]
    settled: bool
    state: RunState
    row: dict[str, Any]
    text: NamedText


class Listing:
    """The rows of one runs folder, with what was read of it so far; safe to ask from several threads.

    Args:
        admitted: whether a run may be read; others are not listed. Asked before each reading.
    """

    def __init__(
        self, runs_dir: str | Path | None = None, admitted: Callable[[RunFolder], bool] = lambda _folder: True
    ) -> None:
        self.root = runs_root(runs_dir)
        self._admitted = admitted
        self._known: dict[str, _Known] = {}
        self._knobs: dict[str, tuple[float | None, EffectiveKnobs]] = {}
        self._round = 0
        self._one_at_a_time = threading.Lock()

    @property
    def warm(self) -> bool:
        """True once it was looked at: then a look at all runs is quick."""
        return self._round > 0

    def look(self, most: int = MOST) -> Listed:
        """Return the newest ``most`` runs as they are now, and older ones that train or wait on this machine.

        Raises:
            OSError: the runs folder is there and cannot be read.
        """
        with self._one_at_a_time:
            marks = _marks(self.root)
            newest = sorted(marks, key=by_time, reverse=True)
            here = known_here() if len(newest) > most else set()
            newest = newest[:most] + [run_id for run_id in newest[most:] if str(self.root / run_id) in here]
            self._round += 1
            for place, run_id in enumerate(newest):
                self._refresh(run_id, marks[run_id], again=(place + self._round) % _AGAIN == 0)
            newest = [run_id for run_id in newest if run_id in self._known]
            # Kept beyond `most`, since a first look at few is followed by one at all; deleted runs are forgotten.
            self._known = {run_id: known for run_id, known in self._known.items() if run_id in marks}
            self._knobs = {run_id: knobs for run_id, knobs in self._knobs.items() if run_id in marks}
            rows = [self._known[run_id].row for run_id in newest]
            return Listed(newest_first(rows), len(marks), len(_marks(self.root / TRASH)))

    def trash(self, most: int = MOST) -> list[dict[str, Any]]:
        """Return the newest ``most`` deleted runs, as rows."""
        root = self.root / TRASH
        newest = sorted(_marks(root), key=by_time, reverse=True)[:most]
        return newest_first([summary(RunFolder(root / run_id)) for run_id in newest])

    def knobs(self, run_ids: Sequence[str]) -> dict[str, Any]:
        """Return the effective knobs of these runs; see :func:`told`."""
        with self._one_at_a_time:
            for run_id in filter(is_run_id, run_ids):
                folder = RunFolder(self.root / run_id)
                known, written = self._knobs.get(run_id), knobs_written(folder)
                # A recipe never changes once its run is there; one that cannot be read may still come.
                if known is None or not known[1].values or known[0] != written:
                    self._knobs[run_id] = written, effective_knobs(folder)
            return told({run_id: self._knobs[run_id][1] if run_id in self._knobs else _NONE for run_id in run_ids})

    def trashed_knobs(self, run_ids: Iterable[str]) -> dict[str, Any]:
        """Return :meth:`knobs` of deleted runs."""
        return told(
            {run_id: effective_knobs(RunFolder(self.root / TRASH / run_id)) for run_id in filter(is_run_id, run_ids)}
        )

    def _refresh(self, run_id: str, mark: tuple[int, int], again: bool) -> None:
        folder = RunFolder(self.root / run_id)
        known = self._known.get(run_id)
        if known is not None and known.settled and known.mark == mark and not again:
            # Whether a process of it is alive, what is ahead of it in the queue and whether its text is still there is
            # written in no file of it.
            status = actual_status(folder, known.state)
            message = known.state.error or message_of(folder, known.state, status)
            missing = known.text.missing(known.state, status)
            now = {"status": status, "message": message, "missing_text": missing, **queue_facts(folder, status)}
            if status == "lost" and known.row["status"] != status:
                now |= numbers(reached(folder, known.state, status))
            if any(known.row[name] != value for name, value in now.items()):
                known.row = known.row | now
            return
        if not self._admitted(folder):
            self._known.pop(run_id, None)
            return
        # The mark is older than the reading: what changes meanwhile changes the mark of the next look.
        state = read_state(folder)
        settled = time.time() - mark[0] / 1e9 > _SETTLED_SECONDS
        # A file that a network file system showed in part is no news worth keeping.
        whole = state.status != "lost" or not state.message.startswith("state.json")
        row, text = summary(folder, state), NamedText(folder)
        self._known[run_id] = _Known(mark, settled and whole, state, row, text)


def newest_first(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort rows by the time of their launch, newest first."""
    # By id within one second, so that the order of two is the same at every look.
    return sorted(rows, key=lambda row: (row["launched"] or 0.0, row["id"]), reverse=True)


def told(knobs: Mapping[str, EffectiveKnobs]) -> dict[str, Any]:
    """Return :func:`columns_of` the knobs in force, and ``steered``: ``{run: {path: [value at the launch, step]}}``."""
    steered = {
        run_id: {path: [knob.launched, knob.step] for path, knob in each.steered.items()}
        for run_id, each in knobs.items()
        if each.steered
    }
    return columns_of({run_id: each.values for run_id, each in knobs.items()}) | {"steered": steered}


def columns_of(knobs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return knobs of many runs without repeating what all have in common.

    Returns:
        ``runs`` (ids), ``same`` (``{path: value}`` of knobs that are equal in all runs), ``differ``
        (``{path: [value per run]}``, None where a run has no such knob).
    """
    columns = [{path: value for path, value in each.items() if path != "schema_version"} for each in knobs.values()]
    differ = differences(columns)
    same = {path: value for each in columns for path, value in each.items() if path not in differ}
    return {"runs": list(knobs), "same": dict(sorted(same.items())), "differ": dict(sorted(differ.items()))}


def _marks(root: Path) -> dict[str, tuple[int, int]]:
    """Return modification time (ns) and inode of every run's folder."""
    marks = {}
    try:
        with os.scandir(root) as entries:
            for entry in entries:
                if is_run_id(entry.name) and entry.is_dir(follow_symlinks=False):
                    try:
                        found = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # deleted meanwhile
                    marks[entry.name] = (found.st_mtime_ns, found.st_ino)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return marks


def by_time(run_id: str) -> tuple[bool, str]:
    """Sorts ids by their time."""
    # Ids begin with their time; those that somebody made up come last.
    return (bool(stamp_in(run_id)), run_id)
