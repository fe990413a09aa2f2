"""Scalars of a run as columns that grow: a dict per record would cost a kernel 1 kB each, a long run has a million."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from workbench.base.json_lines import Record, number

# Shape legend: N records.

CLOCK = ("step", "seconds", "tokens", "flops")
"""The place of a record, in each unit that a page has an axis for."""
_NO_VALUES = frozenset(("seq", *CLOCK))


class Column:
    """Numbers of one type; grows by doubling.

    Args:
        dtype: of the numbers. rows: NaN (or 0) to begin with.
    """

    def __init__(self, dtype: Any, rows: int = 0) -> None:
        self._data = np.full(max(64, rows), np.nan if np.issubdtype(dtype, np.floating) else 0, dtype)
        self._rows = rows

    def __len__(self) -> int:
        return self._rows

    def extend(self, values: np.ndarray | Sequence[float]) -> None:
        """Add these at the end."""
        rows = self._rows + len(values)
        if rows > len(self._data):
            grown = np.empty(max(rows, 2 * len(self._data)), self._data.dtype)
            grown[: self._rows] = self._data[: self._rows]
            self._data = grown
        self._data[self._rows : rows] = values
        self._rows = rows

    def cut(self, rows: int) -> None:
        """Keep the first ``rows``."""
        # A copy: a reader may still hold a view of the old numbers.
        self._data, self._rows = self._data[:rows].copy(), rows

    @property
    def view(self) -> np.ndarray:
        """Return the numbers, (N,); not a copy."""
        return self._data[: self._rows]


class Columns:
    """All scalars of a run.

    Attributes:
        names: what has been recorded, in the order of its first appearance.
    """

    def __init__(self) -> None:
        self._clock = {"step": Column(np.int64), **{kind: Column(np.float64) for kind in CLOCK[1:]}}
        self._values: dict[str, Column] = {}

    def __len__(self) -> int:
        return len(self._clock["step"])

    @property
    def names(self) -> list[str]:
        """Scalars beside the clock."""
        return list(self._values)

    def clock(self, kind: str) -> np.ndarray:
        """Return ``step`` (int64), ``seconds``, ``tokens`` or ``flops`` (float64, NaN before its first record),
        (N,).
        """
        return self._clock[kind].view

    def values(self, name: str) -> np.ndarray:
        """Return a scalar, float32, (N,); NaN where a record lacks it."""
        return self._values[name].view

    def extend(self, records: Iterable[Record]) -> bool:
        """Add records; a rewind removes the records after its step. Returns whether there was one."""
        rewound = False
        for keys, group in itertools.groupby(records, key=tuple):
            if "rewind" in keys:
                for record in group:
                    self.cut(record["rewind"])
                rewound = True
            else:
                self._add(keys, list(group))
        return rewound

    def cut(self, step: int) -> None:
        """Forget the records after a step: a resumed run repeats them."""
        # Steps rise within an attempt, and each attempt begins by cutting the records beyond its first step.
        rows = int(np.searchsorted(self._clock["step"].view, step, side="right"))
        for column in (*self._clock.values(), *self._values.values()):
            column.cut(rows)

    def _add(self, keys: tuple[str, ...], records: list[Record]) -> None:
        """Records with the same names in the same order, as almost all of a run have: one table at once."""
        before, count = len(self), len(records)
        table = _table(records)
        places = {key: place for place, key in enumerate(keys)}
        for kind, column in self._clock.items():
            fresh = table[:, places[kind]] if kind in places else np.full(count, np.nan if kind == "flops" else 0.0)
            column.extend(_carried(column.view, fresh) if kind == "flops" else np.nan_to_num(fresh))
        for key, place in places.items():
            if key in _NO_VALUES or (np.isnan(table[:, place]).all() and all(r[key] is None for r in records)):
                continue
            # A name that comes late (the first evaluation) was missing in all rows before this one.
            column = self._values.setdefault(key, Column(np.float32, before))
            with np.errstate(over="ignore"):  # a gradient norm of 1e300 becomes infinity
                column.extend(table[:, place].astype(np.float32))
        for column in self._values.values():
            if len(column) == before:
                column.extend(np.full(count, np.nan, np.float32))


def rising(records: list[Record]) -> list[Record]:
    """Drop records superseded by a rewind from records picked here and there; the steps of the others rise."""
    kept: list[Record] = []
    least = np.inf
    for record in reversed(records):
        if "rewind" in record:
            least = min(least, record["rewind"] + 1)
        elif record["step"] < least:
            least = record["step"]
            kept.append(record)
    return kept[::-1]


def _table(records: list[Record]) -> np.ndarray:
    shape = len(records), len(records[0])
    values = itertools.chain.from_iterable(map(dict.values, records))
    try:
        # NaN and infinities stand in the file as words, which this reads too.
        return np.fromiter(values, np.float64, shape[0] * shape[1]).reshape(shape)
    except (TypeError, ValueError, OverflowError):
        rows = [list(record.values()) for record in records]
    try:
        return np.array(rows, np.float64)  # null becomes NaN
    except (TypeError, ValueError, OverflowError):
        return np.array([[number(value) for value in row] for row in rows], np.float64)


def _carried(before: np.ndarray, fresh: np.ndarray) -> np.ndarray:
    """FLOPs accumulate: a record without them (an evaluation) takes those of the record before it."""
    if not np.isnan(fresh).any():
        return fresh
    latest = before[-1] if len(before) else np.nan
    known = np.where(np.isnan(fresh), -1, np.arange(len(fresh)))
    last = np.maximum.accumulate(known)
    return np.where(last >= 0, fresh[np.maximum(last, 0)], latest)
