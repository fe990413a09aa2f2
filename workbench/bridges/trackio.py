"""trackio: its local database, without its page or any account."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from workbench.base.errors import RunError
from workbench.bridges.bridge import Bridge, Sent, scores_of
from workbench.bridges.source import Row
from workbench.store.folder import RunFolder
from workbench.store.view import RunView

PROJECT, BATCH = "workbench", 1000


class Trackio(Bridge):
    """A run of trackio's project "workbench" for each run."""

    needs, extra = ("trackio",), "trackio"

    def __init__(self, folder: Path, run: RunFolder, view: RunView, sent: Sent) -> None:
        super().__init__(folder, run, view, sent)
        # trackio reads this as it is imported, and never again.
        if "trackio" not in sys.modules:
            os.environ["TRACKIO_DIR"] = str(folder)
        from trackio.sqlite_storage import SQLiteStorage
        from trackio.utils import TRACKIO_DIR

        if folder != TRACKIO_DIR:
            raise RunError(
                f"trackio in this process writes to '{TRACKIO_DIR}' alone; give that folder, or use "
                "`workbench send` in a terminal"
            )
        # What trackio's own imports of CSV and TensorBoard files write with: `trackio.init` would measure this machine.
        self._log = SQLiteStorage.bulk_log

    def add(self, rows: Iterator[Row]) -> int:
        """Write rows in batches."""
        fresh, count = self.fresh(rows), 0
        while batch := list(itertools.islice(fresh, BATCH)):
            count += sum(len(row.values) for row in batch)
            self._log(
                PROJECT, self.view.name, [row.values for row in batch], [row.step for row in batch],
                [datetime.fromtimestamp(row.time, UTC).isoformat() for row in batch], self.view.recipe,
                run_id=self.view.id,
            )  # fmt: skip
        return count

    def end(self, view: RunView) -> None:
        """Write scores."""
        now = datetime.now(UTC).timestamp()
        self.add(row._replace(time=now) for row in scores_of(view))

    @property
    def opened_by(self) -> str:
        """The page of trackio on this folder."""
        return f"TRACKIO_DIR={self.folder} trackio show --project {PROJECT}"
