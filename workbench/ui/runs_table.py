"""The table of runs: what the folders of all runs say, refreshed by a thread, selected with mouse or keyboard."""

from __future__ import annotations

import threading
import time
import weakref
from pathlib import Path

import anywidget
import traitlets

from workbench.runs.run import Run
from workbench.runs.store import runs
from workbench.runs.summary import summary

REFRESH_SECONDS = 2.0
SHOWN = 50
"""Runs shown, the newest; reading all of a folder of thousands every two seconds would help nobody."""


class RunsTable(anywidget.AnyWidget):
    """Runs of a runs folder, those of other processes and of earlier kernels included.

    Args:
        runs_dir: the runs folder; else ``$WORKBENCH_RUNS``, else ``./runs``.
        refresh_seconds: how often the folders are read; 0 reads only when asked (:meth:`refresh`).

    Attributes:
        rows: one mapping per run, newest first, as the page shows them.
        selected: ids of the selected runs, in the order of the table.
        complaint: why the folders cannot be read, else empty.
    """

    # As text: given a path, anywidget keeps every widget that was ever made alive, to reload it when the file changes.
    _esm = (Path(__file__).parent / "runs_table.js").read_text(encoding="utf-8")
    _css = (Path(__file__).parent / "runs_table.css").read_text(encoding="utf-8")

    rows = traitlets.List(traitlets.Dict()).tag(sync=True)
    selected = traitlets.List(traitlets.Unicode()).tag(sync=True)
    complaint = traitlets.Unicode("").tag(sync=True)

    def __init__(self, runs_dir: str | Path | None = None, refresh_seconds: float = REFRESH_SECONDS) -> None:
        super().__init__()
        self._runs_dir = runs_dir
        self._closed = threading.Event()
        self.refresh()
        if refresh_seconds > 0:
            # The thread holds no reference to the table: a Lab that nobody has any more must not be read for ever.
            arguments = (weakref.ref(self), self._closed, refresh_seconds)
            threading.Thread(target=_follow, args=arguments, name="workbench-runs", daemon=True).start()

    def refresh(self) -> None:
        """Read the folders now; sends only when something is new."""
        try:
            found = [summary(run.folder) for run in runs(self._runs_dir)[:SHOWN]]
        except OSError as error:
            self.complaint = f"the runs folder cannot be read: {error}"
            return
        self.complaint = ""
        # Compared here, since a trait of dicts would be sent every two seconds although nothing moved.
        if found != self.rows:
            self.rows = found
        # A deleted run must not stay selected, or the next button would ask for it.
        known = {entry["id"] for entry in found}
        if any(run_id not in known for run_id in self.selected):
            self.selected = [run_id for run_id in self.selected if run_id in known]

    def chosen(self) -> list[Run]:
        """The selected runs."""
        return [Run(run_id, self._runs_dir) for run_id in self.selected]

    def close(self) -> None:
        """Stop reading and leave the page."""
        self._closed.set()
        super().close()


def _follow(table: weakref.ref[RunsTable], closed: threading.Event, seconds: float) -> None:
    while not closed.wait(seconds):
        alive = table()
        if alive is None:
            return
        started = time.monotonic()
        alive.refresh()
        # A slow file system must not keep the kernel busy with reading.
        closed.wait(4 * (time.monotonic() - started))
        del alive
