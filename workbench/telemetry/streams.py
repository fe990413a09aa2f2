"""Telemetry of a run: three append-only streams of JSON lines, one writer, any number of readers.

* ``scalars``: ``{"seq", "step", "seconds", "tokens", <name>: number, ...}``, loss in nats, times in seconds;
* ``layers``: ``{"seq", "step", <name>: [one value per layer, null where there is none], ...}``;
* ``events``: ``{"seq", "step", "kind", "text", "time", "data"}``: stages, evaluations, checkpoints, knob changes, in
  words for people; ``data`` is the same for programs (:func:`data_of`).

Lines are written whole by one ``os.write`` on an ``O_APPEND`` descriptor, so nothing is torn by kill -9, and are at
most ``flush_seconds`` old. A run resumed from step N writes ``{"rewind": N}`` first: readers forget later steps.
Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.base.errors import FREE_SPACE
from workbench.base.json_lines import Record, Tail
from workbench.base.json_lines import number as number

STREAMS = ("scalars", "layers", "events")
RECENT = 50
"""Losses whose mean is called the training loss of a run."""
# A disk that stays full for hours must not fill the memory too: this is some 20 MB per stream.
KEPT_LINES = 100_000
EXACT_BYTES = 8_000_000
"""Streams up to this size are read as they are: some 25,000 records."""


def stream_path(folder: Path, stream: str) -> Path:
    """Return file of a stream inside a run's telemetry folder."""
    return folder / f"{stream}.jsonl"


class TelemetryWriter:
    """The one writer of a run's telemetry.

    Args:
        folder: the run's telemetry folder; created when missing.
        flush_seconds: records reach the file at most this many seconds after they were written; None: with the next
            event, :meth:`flush` or :meth:`close`, and no thread is started.
        on_full: called once with a message when the disk gets full; what did not fit is kept (the last
            :data:`KEPT_LINES` lines of each stream) and written when there is space again.
    """

    def __init__(
        self, folder: Path, flush_seconds: float | None = 0.1, on_full: Callable[[str], None] | None = None
    ) -> None:
        # Not its parents: a run whose folder was removed must not make a part of it reappear.
        folder.mkdir(exist_ok=True)
        self._paths = {stream: stream_path(folder, stream) for stream in STREAMS}
        self._files = {stream: _open_append(path) for stream, path in self._paths.items()}
        self._pending: dict[str, list[bytes]] = {stream: [] for stream in STREAMS}
        # A resumed run goes on counting, so that readers see one stream.
        self._seq = {stream: _count_lines(path) for stream, path in self._paths.items()}
        self._on_full, self._reported = on_full, False
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        if flush_seconds is not None:
            self._thread = threading.Thread(target=self._tick, args=(flush_seconds,), name="telemetry", daemon=True)
            self._thread.start()

    def scalars(self, step: int, seconds: float, tokens: int, **values: float | None) -> None:
        """One record of numbers; NaN and infinities are kept as the strings ``"nan"``, ``"inf"``, ``"-inf"``."""
        # A tenth of a millisecond; more digits would only lengthen every line.
        self._add("scalars", {"step": step, "seconds": round(seconds, 4), "tokens": tokens, **values})

    def layers(self, step: int, **vectors: Sequence[float | int | None]) -> None:
        """One record of per-layer values, each a list with one entry per layer of the finished model."""
        self._add("layers", {"step": step, **{name: list(vector) for name, vector in vectors.items()}})

    def event(self, step: int, kind: str, text: str, **data: Any) -> None:
        """Write what happened once: ``text`` for people, ``data`` (JSON-able) for programs; it is written at once."""
        # Through at once, not with the next tick: events are rare, and somebody may be waiting for just this one.
        self._add("events", {"step": step, "kind": kind, "text": text, "time": time.time(), "data": data})
        self.flush()

    def rewind(self, step: int) -> None:
        """Readers drop scalars and layers beyond ``step`` that were written before this call."""
        for stream in ("scalars", "layers"):
            self._add(stream, {"rewind": step})
        self.flush()

    def flush(self) -> None:
        """Hand everything pending to the operating system: kill -9 can no longer lose it."""
        with self._lock:
            # A list, not a generator that `next` would leave early: every stream is tried, whatever became of the one
            # before.
            failures = [self._write(stream, lines) for stream, lines in self._pending.items() if lines]
        problem = next(filter(None, failures), "")
        # Told once per outage, not with every tick of it.
        reported, self._reported = self._reported, bool(problem)
        # After the lock is free: the listener may write an event.
        if problem and not reported and self._on_full:
            self._on_full(f"telemetry could not be written to disk ({problem}); {FREE_SPACE}")

    def close(self) -> None:
        """Flush and release the files; a second call does nothing."""
        if self._closed.is_set():
            return
        self._closed.set()
        # The tick ends first, so that nothing writes to a descriptor that is being closed.
        if self._thread is not None:
            self._thread.join(timeout=5)
        self.flush()
        for descriptor in self._files.values():
            os.close(descriptor)

    def _add(self, stream: str, record: Record) -> None:
        with self._lock:
            # Numbered and queued under one lock: any thread may speak, and numbers must stand in the file in their
            # order.
            line = json.dumps({"seq": self._seq[stream], **_finite(record)}, separators=(",", ":"), allow_nan=False)
            self._seq[stream] += 1
            self._pending[stream].append(line.encode() + b"\n")

    def _write(self, stream: str, lines: list[bytes]) -> str:
        """Append ``lines``, leave in it what did not fit; returns why, or nothing."""
        descriptor, block, problem = self._files[stream], b"".join(lines), ""
        before = os.fstat(descriptor).st_size
        try:
            written = os.write(descriptor, block)
        except OSError as error:
            written, problem = 0, str(error)
        if written == len(block):
            lines.clear()
            return ""
        # A full disk writes part of a block without an error: cut back to the last whole line, keep the rest.
        whole = block[:written].rfind(b"\n") + 1
        os.ftruncate(descriptor, before + whole)
        lines[:] = block[whole:].splitlines(keepends=True)[-KEPT_LINES:]
        return problem or "short write"

    def _tick(self, seconds: float) -> None:
        while not self._closed.wait(seconds):
            self.flush()


def add_event(folder: Path, step: int, kind: str, text: str, **data: Any) -> None:
    """One event (:meth:`TelemetryWriter.event`) of a run that nobody trains meanwhile: telemetry has one writer.

    Raises:
        OSError: the folder is gone, or cannot be written to.
    """
    writer = TelemetryWriter(folder, flush_seconds=None)
    try:
        writer.event(step, kind, text, **data)
    finally:
        writer.close()


@dataclass
class Telemetry:
    """All records of a run so far, rewinds applied, in step order.

    Attributes:
        scalars, layers, events: records as written.
        version: grows when records were dropped (a rewind), so that a view knows to start over.
    """

    scalars: list[Record] = field(default_factory=list)
    layers: list[Record] = field(default_factory=list)
    events: list[Record] = field(default_factory=list)
    version: int = 0

    def series(self, name: str, x: str = "step") -> tuple[list[float], list[float]]:
        """Return ``(x values, y values)`` of one scalar, records without it left out."""
        found = [record for record in self.scalars if record.get(name) is not None and x in record]
        return [number(record[x]) for record in found], [number(record[name]) for record in found]


class TelemetryReader:
    """Follows the streams of a run by byte offset; never blocks the writer, never sees half a line."""

    def __init__(self, folder: Path) -> None:
        self._tails = {stream: Tail(stream_path(folder, stream)) for stream in STREAMS}
        self.telemetry = Telemetry()

    def poll(self, *streams: str) -> dict[str, list[Record]]:
        """Read what is new since the last call; returns it by stream and adds it to :attr:`telemetry`.

        Args:
            *streams: to read; all without any.
        """
        fresh: dict[str, list[Record]] = {}
        for stream in streams or STREAMS:
            tail = self._tails[stream]
            fresh[stream] = tail.read()
            while tail.behind:
                fresh[stream] += tail.read()
            kept: list[Record] = getattr(self.telemetry, stream)
            for record in fresh[stream]:
                if "rewind" in record:
                    # Steps rise within an attempt, so the records to forget are the last ones.
                    while kept and kept[-1]["step"] > record["rewind"]:
                        kept.pop()
                    self.telemetry.version += 1
                else:
                    kept.append(record)
        return fresh


def read_telemetry(folder: Path, *, exact: bool = False) -> Telemetry:
    """Return a run's records so far; a long run is downsampled to fit into memory, and draws the same pictures.

    Args:
        exact: every record of a long run, too: some 3 kB of memory for each.
    """
    reader = TelemetryReader(folder)
    if exact or is_short(folder):
        reader.poll()
        return reader.telemetry
    # Here, for numpy: most of who reads runs reads none that are this long.
    from workbench.telemetry.downsample import read_layers, read_scalars

    scalars, layers = read_scalars(stream_path(folder, "scalars")), read_layers(stream_path(folder, "layers"))
    return Telemetry(scalars, layers, read_events(folder))


def read_events(folder: Path) -> list[Record]:
    """Return what has happened in a run so far."""
    reader = TelemetryReader(folder)
    reader.poll("events")
    return reader.telemetry.events


def is_short(folder: Path) -> bool:
    """Return whether the streams of a run are so short that they are read as they are (:data:`EXACT_BYTES`)."""
    size = 0
    for stream in ("scalars", "layers"):
        with contextlib.suppress(OSError):
            size = max(size, stream_path(folder, stream).stat().st_size)
    return size <= EXACT_BYTES


def data_of(event: Record) -> Record:
    """Return what an event says to programs; earlier runs wrote it among the event's own keys."""
    data = event.get("data", event)
    return data if isinstance(data, dict) else {}


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        # JSON has no word for these, and a run that diverges must be able to say so.
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def _open_append(path: Path) -> int:
    """Open for appending, first cutting off a last line that a dead writer left unfinished."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0), 0o644)
    size = os.fstat(descriptor).st_size
    # One write of a flush is far below a mebibyte; the file may be gigabytes.
    tail = os.pread(descriptor, min(size, 1 << 20), max(0, size - (1 << 20)))
    os.ftruncate(descriptor, size - (len(tail) - (tail.rfind(b"\n") + 1)))
    return descriptor


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)
