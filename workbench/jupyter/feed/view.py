"""A run as pictures want it, also one of a million records: downsampled, without a dict for each of them."""

from __future__ import annotations

from workbench.jupyter.feed.track import Track
from workbench.store.folder import RunFolder
from workbench.store.view import RunView
from workbench.telemetry.downsample import records_of
from workbench.telemetry.streams import Record, Telemetry, TelemetryReader, is_short


def view_of(folder: RunFolder, track: Track | None = None) -> RunView:
    """Return a run for the functions of :mod:`workbench.plots`.

    Args:
        folder: the run's folder. track: of the same run, if somebody has read it already.
    """
    if is_short(folder.telemetry):
        return RunView.read(folder)
    if track is None or not track.caught_up or not len(track.steps):
        track = Track(folder)
        track.poll()
        while not track.caught_up:
            track.poll()
    return RunView.read(folder, _Held(folder, track))


class _Held(TelemetryReader):
    """A reader that has nothing left to read."""

    def __init__(self, folder: RunFolder, track: Track) -> None:
        super().__init__(folder.telemetry)
        with track.lock:
            self.telemetry = Telemetry(records_of(track.columns, track.names()), _layers(track), list(track.events))

    def poll(self, *streams: str) -> dict[str, list[Record]]:
        return {}


def _layers(track: Track) -> list[Record]:
    names = list(track.layer_values)
    tables = {name: [vector.tolist() for vector in track.layer_values[name]] for name in names}
    return [
        {"step": step, **{n: [None if v != v else v for v in tables[n][k]] for n in names if len(tables[n][k])}}
        for k, step in enumerate(track.layer_steps)
    ]
