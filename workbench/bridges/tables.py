"""CSV and Parquet: a row per step, a column per series. Each call writes the whole file anew."""

from __future__ import annotations

import csv
import itertools
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from workbench.bridges.bridge import Bridge, Sent, scores_of
from workbench.bridges.source import Row, Source
from workbench.store.folder import RunFolder, write_json
from workbench.store.view import RunView
from workbench.telemetry.streams import read_events

BATCH = 10_000


class Table(Bridge):
    """``RUN.csv`` or ``RUN.parquet``; beside it ``RUN.json`` with recipe, scores and events."""

    ending: ClassVar[str]

    def __init__(self, folder: Path, run: RunFolder, view: RunView, sent: Sent) -> None:
        super().__init__(folder, run, view, sent)
        self._names = dict.fromkeys(("step", "time", "seconds", "tokens", "flops"))

    @property
    def path(self) -> Path:
        """The table."""
        return self.folder / f"{self.view.id}.{self.ending}"

    def add(self, rows: Iterator[Row]) -> int:
        """Write all rows that the run has; whoever reads the file meanwhile has the earlier one, whole."""
        count = 0
        for row in rows:
            self._names |= dict.fromkeys(row.values)
            count += len(self.sent.fresh(row).values)
        if count or not self.path.exists():
            aside = self.path.with_name(f"{self.path.name}.tmp")
            try:
                # From the beginning once more: a column may have come late.
                self.write(aside, list(self._names), Source(self.run).rows()[1])
                aside.replace(self.path)
            finally:
                aside.unlink(missing_ok=True)
        return count

    def rewind(self, step: int) -> None:
        """Count what a resumed run repeats as new."""
        self.sent.cut(step)

    @abstractmethod
    def write(self, path: Path, names: list[str], rows: Iterator[Row]) -> None:
        """Write rows with these columns; a value that a row lacks stays empty."""

    def end(self, view: RunView) -> None:
        """Write what is no series."""
        scores = [{"step": step, **values} for step, _, values in scores_of(view) if values]
        write_json(
            self.folder / f"{view.id}.json",
            {"run": view.id, "name": view.name, "status": view.status, "tags": view.labels.tags,
             "notes": view.labels.notes, "recipe": view.recipe, "scores": scores,
             "events": read_events(self.run.telemetry)},
        )  # fmt: skip

    @property
    def opened_by(self) -> str:
        """A line of pandas."""
        return f'pandas.read_{self.ending}("{self.path}")'


class Csv(Table):
    """Text with a header, UTF-8; ``nan`` and ``inf`` as such, nothing where a record lacks a value."""

    ending = "csv"

    def write(self, path: Path, names: list[str], rows: Iterator[Row]) -> None:
        """Write a line per row."""
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, names, extrasaction="ignore")
            table.writeheader()
            table.writerows({"step": row.step, "time": row.time, **row.values} for row in rows)


class Parquet(Table):
    """Columns of doubles (steps: 64-bit integers), compressed."""

    needs, extra, ending = ("pyarrow",), "files", "parquet"

    def write(self, path: Path, names: list[str], rows: Iterator[Row]) -> None:
        """Write a row group per :data:`BATCH` rows."""
        import pyarrow
        import pyarrow.parquet

        schema = pyarrow.schema([(name, pyarrow.int64() if name == "step" else pyarrow.float64()) for name in names])
        with pyarrow.parquet.ParquetWriter(path, schema) as table:
            while batch := list(itertools.islice(rows, BATCH)):
                whole = [{"step": row.step, "time": row.time, **row.values} for row in batch]
                table.write_table(pyarrow.Table.from_pylist(whole, schema))
