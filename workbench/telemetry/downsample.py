"""Telemetry of a long run in bounded memory: few records that draw the same pictures as all of them.

Two million records kept as dicts take gigabytes and a minute. Here they pass through columns of numbers, a piece at a
time. The records kept are spread evenly; the extremes of every scalar are kept as well, so that no spike disappears,
and the last record as it was written.

Shape legend: N samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from workbench.base.json_lines import Record, Tail
from workbench.telemetry.columns import CLOCK, Columns

EVENLY = 12_000
"""Records evenly spread, so that a mean over some of them is one over the run's."""
SPIKES = 600
"""Lowest and highest of each scalar beside them."""
LAYER_RECORDS = 2_000
"""Records of layers, evenly spread; a heat map is not wider."""


def read_scalars(path: Path) -> list[Record]:
    """Return scalars of a run that draw the same lines as all of them; a short run's are complete."""
    columns, last = Columns(), None
    for records in _pieces(path):
        columns.extend(records)
        last = records[-1]
    found = records_of(columns, columns.names)
    if found and last is not None and last.get("step") == found[-1]["step"]:
        found[-1] = last
    return found


def read_columns(path: Path) -> Columns:
    """Return every scalar of a run, also of a long one, as columns."""
    columns = Columns()
    for records in _pieces(path):
        columns.extend(records)
    return columns


def read_layers(path: Path) -> list[Record]:
    """Return records of layers at a regular stride: of a long run, one to two times :data:`LAYER_RECORDS`."""
    kept: list[Record] = []
    stride = place = 0
    for records in _pieces(path):
        for record in records:
            if "rewind" in record:
                while kept and kept[-1]["step"] > record["rewind"]:
                    kept.pop()
                continue
            # The last of each stride, as a page that draws them draws the last one in a pixel.
            place += 1
            if place % (1 << stride) == 0:
                kept.append(record)
                if len(kept) >= 2 * LAYER_RECORDS:
                    kept, stride = kept[1::2], stride + 1
    return kept


def records_of(columns: Columns, names: Iterable[str]) -> list[Record]:
    """Return few records that draw the same lines as all of them.

    Args:
        names: of the scalars whose extremes are kept; the others are kept beside them.
    """
    steps = columns.clock("step")
    chosen = [evenly(len(columns), EVENLY)]
    chosen += [extremes(steps, columns.values(name), SPIKES) for name in names]
    rows = np.unique(np.concatenate(chosen))
    clock = {kind: columns.clock(kind)[rows].tolist() for kind in CLOCK}
    # As in the file: a missing number is a missing name.
    table = clock | {name: columns.values(name)[rows].tolist() for name in columns.names}
    return [
        {name: values[place] for name, values in table.items() if values[place] == values[place]}
        for place in range(len(rows))
    ]


def extremes(steps: np.ndarray, values: np.ndarray, points: int) -> np.ndarray:
    """Return indices of at most ``points`` samples that draw the same line: the lowest and highest of every bucket.

    Args:
        steps: [N], ascending. values: [N], may hold NaN, which is left out.
        points: how many to keep at most; the first and the last are always among them.

    Returns:
        Ascending indices.
    """
    present = np.flatnonzero(~np.isnan(values))
    if len(present) <= points:
        return present
    drawn, buckets = values[present], max(1, (points - 2) // 2)
    # Buckets of equal width, as pixels are; of equal counts, a pause in the logging would take none.
    ends = np.linspace(steps[present[0]], steps[present[-1]], buckets + 1)
    edges = np.unique(np.searchsorted(steps[present], ends[1:-1]))
    edges = np.concatenate([[0], edges[(edges > 0) & (edges < len(present))], [len(present)]])
    # A loop over buckets, not over samples: 3 ms for a million of them, where sorting takes 150.
    spans = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    keep = [low + int(drawn[low:high].argmin()) for low, high in spans]
    keep += [low + int(drawn[low:high].argmax()) for low, high in spans]
    return present[np.unique([0, *keep, len(present) - 1])]


def evenly(count: int, points: int) -> np.ndarray:
    """At most ``points`` indices of ``count``, evenly spread, the first and the last among them."""
    if count <= points:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, points).round().astype(np.int64))


def _pieces(path: Path) -> Iterator[list[Record]]:
    tail = Tail(path)
    while True:
        records = tail.read()
        # None of a piece whose lines are all damaged.
        if records:
            yield records
        if not tail.behind:
            return
