"""A run as pictures want it, also one of a million records: thinned, without a dict for each of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.live.columns import CLOCK
from workbench.live.track import Track
from workbench.live.wire import evenly, extremes
from workbench.runs.folder import RunFolder
from workbench.runs.view import RunView, follow
from workbench.telemetry import Record, Telemetry, TelemetryReader, stream_path

EXACT_BYTES = 8_000_000
"""Scalars up to this size are read as they are: some 25,000 records."""
EVENLY = 12_000
"""Records of a longer run, evenly spread, so that a mean over some of them is one over the run's."""
SPIKES = 600
"""Lowest and highest of each core scalar beside them, so that none disappears."""


def view_of(folder: RunFolder, track: Track | None = None) -> RunView:
    """A run for the functions of :mod:`workbench.plots`.

    Args:
        folder: the run's folder. track: of the same run, if somebody has read it already.
    """
    try:
        small = stream_path(folder.telemetry, "scalars").stat().st_size <= EXACT_BYTES
    except OSError:
        small = True
    if small:
        return RunView.read(folder)
    if track is None or not track.caught_up or not len(track.steps):
        track = Track(folder)
        while track.poll() and not track.caught_up:
            pass
    return follow(folder, _Held(folder, track))


class _Held(TelemetryReader):
    """A reader that has nothing left to read."""

    def __init__(self, folder: RunFolder, track: Track) -> None:
        super().__init__(folder.telemetry)
        with track.lock:
            self.telemetry = Telemetry(_scalars(track), _layers(track), list(track.events))

    def poll(self) -> dict[str, list[Record]]:
        return {}


def _scalars(track: Track) -> list[Record]:
    columns = track.columns
    chosen = [evenly(len(columns), EVENLY)]
    chosen += [extremes(track.steps, columns.values(name), SPIKES) for name in track.names()]
    rows = np.unique(np.concatenate(chosen))
    clock = {kind: columns.clock(kind)[rows].tolist() for kind in CLOCK}
    # As if they had been written so: a missing number is a missing name.
    values = {name: columns.values(name)[rows].tolist() for name in columns.names}
    records: list[Record] = []
    for place in range(len(rows)):
        at: dict[str, Any] = {kind: column[place] for kind, column in clock.items()}
        scalars = {name: column[place] for name, column in values.items()}
        records.append({key: value for key, value in (at | scalars).items() if value == value})
    return records


def _layers(track: Track) -> list[Record]:
    names = list(track.layer_values)
    tables = {name: [vector.tolist() for vector in track.layer_values[name]] for name in names}
    return [
        {"step": step, **{n: [None if v != v else v for v in tables[n][k]] for n in names if len(tables[n][k])}}
        for k, step in enumerate(track.layer_steps)
    ]
