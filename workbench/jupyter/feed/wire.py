"""Messages to the page: one JSON header and one block of little-endian columns each.

Every column starts at a multiple of 8 bytes, so that the page maps it without a copy. For each run of the header, in
this order: the clock (``clock`` rows: steps i4, seconds f4, tokens f8, FLOPs f4), ``dense`` scalars (f4, one per clock
row), ``sparse`` scalars (steps i4, values f4; the header has the name's place, their count, and how many were
recorded), and heat-map columns (steps i4, then for each name ``columns * layers`` values: u1 for ``state`` with 255
for none, f4 for the rest). A ``detail`` (:func:`detail`) answers for a stretch of steps that somebody has zoomed into.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.client.titles import titles
from workbench.jupyter.feed.cursor import News, cursor, news_since
from workbench.jupyter.feed.track import Track
from workbench.plots.activity import chosen_columns
from workbench.telemetry.downsample import evenly, extremes
from workbench.telemetry.streams import data_of

# The lowest and the highest per pixel of a plot 1000 pixels wide; more could not be seen.
SNAPSHOT_POINTS = 2000
SNAPSHOT_COLUMNS = 600
SNAPSHOT_BYTES = 32 * 1024
# What somebody would read; an error text of megabytes must not travel ten times a second.
_EVENTS = 200
# Of no use without a kernel or server, and some kilobytes each.
_STEERING = ("knobs", "checkpoints", "lease")
_TEXT = 400
# A fork to another optimizer tells some twenty knobs.
_EVENT_TEXT = 2000
# What the page draws of an event: which stage began, which layers are copies, which knob moved where, what was asked.
_DATA = {"stage": ("stage", "stages", "copies"), "knob": ("path", "value"), "request": ("verb", "done")}
_DATA_TEXT = 4000


class _Block:
    """Columns one after the other, each aligned."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0

    def add(self, column: Any, dtype: str) -> None:
        raw = np.ascontiguousarray(column, dtype=dtype).tobytes()
        # A typed array on an odd offset throws in JavaScript, and copying is what this layout saves.
        raw += bytes(-len(raw) % 8)
        self.parts.append(raw)
        self.size += len(raw)


def snapshot(
    tracks: list[Track],
    extra: frozenset[str] = frozenset(),
    points: int = SNAPSHOT_POINTS,
    columns: int = SNAPSHOT_COLUMNS,
    quantities: bool = True,
    steering: bool = True,
    names: Sequence[str] = (),
) -> tuple[dict[str, Any], bytes]:
    """Return everything a page needs to draw all runs.

    Args:
        tracks: the runs.
        extra: scalars beyond the core that a page asked for.
        points: per scalar. columns: of the heat map. quantities: with all that is known per layer, not states alone.
        steering: with what a page needs to steer the runs.
        names: what the runs are called; else as :func:`names_of` tells.

    Returns:
        ``(header, block)``.
    """
    block = _Block()
    runs = []
    for track, title in zip(tracks, names or names_of(tracks), strict=True):
        entry = _identity(track, title, quantities) | {
            "names": track.names(extra),
            "others": sorted(track.columns.names),
        }
        steps = track.steps
        rows = evenly(len(steps), points)
        entry["clock"] = len(rows)
        _clock(block, track, rows)
        entry["dense"], entry["sparse"] = [], []
        for place, name in enumerate(entry["names"]):
            # One reduction of a long curve serves the page and all sizes of a saved snapshot.
            rows, recorded = track.drawn(name, _reduced)
            kept = rows[extremes(steps[rows], track.columns.values(name)[rows], points)]
            entry["sparse"].append([place, _samples(block, track, name, kept), recorded + track.loading])
        shown = chosen_columns(np.asarray(track.layer_starts, dtype=bool), columns)
        entry["columns"] = _columns(block, track, shown, entry["layer_names"])
        entry["status"] = {key: value for key, value in track.status.items() if steering or key not in _STEERING}
        entry["events"] = [_event(event) for event in _worth(track.events)]
        runs.append(entry)
    return {"type": "snapshot", "runs": runs}, b"".join(block.parts)


def delta(
    tracks: list[Track], news: list[News], extra: frozenset[str] = frozenset()
) -> tuple[dict[str, Any], bytes] | None:
    """Return what is new to a page, or None when nothing is."""
    block = _Block()
    runs = []
    for index, (track, found) in enumerate(zip(tracks, news, strict=True)):
        rows = np.arange(found.first_row, len(track.steps))
        columns = np.arange(found.first_column, len(track.layer_steps))
        entry: dict[str, Any] = {"i": index}
        if len(rows):
            entry["clock"] = len(rows)
            _clock(block, track, rows)
            entry |= _scalars(block, track, rows, extra)
        if len(columns):
            entry["columns"] = _columns(block, track, columns, list(track.layer_values))
        if found.changes:
            entry["status"] = found.changes
        if found.events:
            entry["events"] = [_event(event) for event in _worth(found.events)]
        # A run that said nothing is left out: with eight of them watched, mostly one has news.
        if len(entry) > 1:
            runs.append(entry)
    return ({"type": "delta", "runs": runs}, b"".join(block.parts)) if runs else None


def detail(
    tracks: list[Track], ask: int, spans: Sequence[Sequence[float] | None], names: Sequence[str], points: int
) -> tuple[dict[str, Any], bytes]:
    """Return a stretch of steps, as finely as a screen shows it, or every record of it.

    Args:
        tracks: the runs. ask: number of the question, given back. spans: first and last step per run, None for none.
        names: scalars; those that a run has not recorded are left out of it. points: per scalar; 0 for all.

    Returns:
        ``(header, block)``; per run of the header the clock, then each scalar (steps i4, values f4).
    """
    block = _Block()
    runs = []
    for index, (track, span) in enumerate(zip(tracks, spans, strict=False)):
        if span is None or not len(track.steps):
            continue
        first, last = np.searchsorted(track.steps, span[0]), np.searchsorted(track.steps, span[1], side="right")
        rows, limit = slice(int(first), int(last)), points or len(track.steps)
        entry: dict[str, Any] = {"i": index, "from": span[0], "to": min(span[1], int(track.steps[-1]))}
        picked = rows.start + evenly(rows.stop - rows.start, limit)
        entry["clock"] = len(picked)
        _clock(block, track, picked)
        entry["series"] = []
        for name in (name for name in names if name in track.columns.names):
            values = track.columns.values(name)[rows]
            kept = _samples(block, track, name, rows.start + extremes(track.steps[rows], values, limit))
            # While a run is being read there is more to know of every curve than is held (`loading` counts as one).
            entry["series"].append([name, kept, int(np.count_nonzero(~np.isnan(values))) + track.loading])
        runs.append(entry)
    return {"type": "detail", "ask": ask, "runs": runs}, b"".join(block.parts)


def update(
    tracks: list[Track], since: str = "", extra: frozenset[str] = frozenset()
) -> tuple[dict[str, Any], bytes] | None:
    """Return the news for a page: a delta, everything where a delta would not do, None when there is none.

    Args:
        tracks: the runs. since: the cursor of the last message that the page has taken; empty for everything.
        extra: scalars beyond the core that a page asked for.

    Returns:
        ``(header, block)``; the header's ``cursor`` says how far this goes (:mod:`workbench.jupyter.feed.cursor`), a
        delta's ``since`` where it begins: the page can go on from there with whoever else serves the run.
    """
    news = news_since(tracks, since, extra)
    fresh = snapshot(tracks, extra) if news is None else delta(tracks, news, extra)
    if fresh is None:
        return None
    header, block = fresh
    return header | ({} if news is None else {"since": since}) | {"cursor": cursor(tracks, extra)}, block


def sealed(header: dict[str, Any], block: bytes) -> bytes:
    """Return header and block as one piece, for a widget trait: length of the header (u4), the header, padding,
    the block.
    """
    # NaN is no JSON to the page: better an error here that can be found than a widget that stays blank there.
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    # Spaces, which JSON ignores, so that the block behind is aligned.
    text += b" " * (-(len(text) + 4) % 8)
    return len(text).to_bytes(4, "little") + text + block


def saved_snapshot(tracks: list[Track], limit: int = SNAPSHOT_BYTES) -> bytes:
    """Return the best snapshot of at most ``limit`` bytes, for a notebook that is read without a kernel.

    Returns:
        A sealed snapshot; empty when even names and states do not fit.
    """
    # From rich to poor. Numbers per layer go first, then resolution: states and a rough curve still tell the story.
    names = names_of(tracks)
    sizes = [(400, 240), (250, 160), (160, 100), (100, 64), (64, 40), (32, 24), (16, 8), (0, 0)]
    for quantities in (True, False):
        for points, columns in sizes if not quantities else sizes[:4]:
            whole = sealed(
                *snapshot(tracks, points=points, columns=columns, quantities=quantities, steering=False, names=names)
            )
            if len(whole) <= limit:
                return whole
    return b""


def names_of(tracks: Sequence[Track]) -> list[str]:
    """Return names of runs, those of one name told apart; recipes are read only where there are such."""
    names = [track.name for track in tracks]
    return names if len(set(names)) == len(names) else titles([track.folder for track in tracks])


def _identity(track: Track, title: str, quantities: bool) -> dict[str, Any]:
    budget = track.recipe.get("budget")
    names = [name for name in track.layer_values if quantities or name == "state"]
    return {
        "id": track.folder.id,
        "name": title[:_TEXT],
        "budget": {key: budget.get(key) for key in ("amount", "unit")} if isinstance(budget, dict) else None,
        "layers": track.layers,
        "layer_names": names,
    }


def _clock(block: _Block, track: Track, rows: np.ndarray) -> None:
    # Tokens as f8: float32 counts exactly only to 16.8 million.
    for kind, dtype in (("step", "<i4"), ("seconds", "<f4"), ("tokens", "<f8"), ("flops", "<f4")):
        block.add(track.columns.clock(kind)[rows], dtype)


def _reduced(steps: np.ndarray, values: np.ndarray) -> np.ndarray:
    return extremes(steps, values, SNAPSHOT_POINTS)


def _samples(block: _Block, track: Track, name: str, rows: np.ndarray) -> int:
    block.add(track.steps[rows], "<i4")
    block.add(track.columns.values(name)[rows], "<f4")
    return len(rows)


def _scalars(block: _Block, track: Track, rows: np.ndarray, extra: frozenset[str]) -> dict[str, Any]:
    dense, sparse = [], []
    steps = track.steps[rows[0] :]
    columns = {place: track.columns.values(name)[rows[0] :] for place, name in enumerate(track.names(extra))}
    present = {place: ~np.isnan(values) for place, values in columns.items()}
    for place, values in columns.items():
        if present[place].all():
            dense.append(place)
            block.add(values, "<f4")
    for place, values in columns.items():
        if place not in dense and present[place].any():
            sparse.append([place, *[int(present[place].sum())] * 2])
            block.add(steps[present[place]], "<i4")
            block.add(values[present[place]], "<f4")
    return {"dense": dense, "sparse": sparse}


def _columns(block: _Block, track: Track, picked: np.ndarray, names: list[str]) -> int:
    if not names or not len(picked):
        return 0
    block.add([track.layer_steps[i] for i in picked], "<i4")
    for name in names:
        values = np.full((len(picked), track.layers), np.nan, np.float32)
        for row, i in enumerate(picked):
            vector = track.layer_values[name][i]
            values[row, : len(vector)] = vector
        if name == "state":
            # A byte has no NaN; 255 is no state.
            block.add(np.where(np.isnan(values), 255, values), "u1")
        else:
            block.add(values, "<f4")
    return len(picked)


def _worth(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the latest events, and every stage: the layer map cannot be read without them."""
    return [event for event in events[:-_EVENTS] if event.get("kind") == "stage"] + events[-_EVENTS:]


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _event(event: dict[str, Any]) -> dict[str, Any]:
    kind = str(event.get("kind", ""))[:40]
    line = {
        "step": event.get("step", 0),
        "kind": kind,
        "text": _cut(str(event.get("text", "")), _EVENT_TEXT),
        "time": event.get("time"),
    }
    data = {key: value for key, value in data_of(event).items() if key in _DATA.get(kind, ())}
    try:
        # A page gets what it draws; data written by hand may be megabytes, or no JSON.
        small = len(json.dumps(data, allow_nan=False)) <= _DATA_TEXT
    except ValueError:
        small = False
    return line | {"data": data} if data and small else line
