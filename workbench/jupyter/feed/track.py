"""One run as its page needs it: columns of numbers that grow, and the changes since the last look.

Only increments are parsed, a bounded piece at a time. Of a run that has written much before anybody asked, a sample
of all of it is there at once, and gives way to the whole when that has been read.
"""

from __future__ import annotations

import contextlib
import json
import math
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from workbench.base.json_lines import PIECE_BYTES, Tail, finite
from workbench.client.steering import steering
from workbench.client.summary import message_of, queue_facts
from workbench.plots.activity import settled, state_codes
from workbench.store.folder import RunFolder, read_object
from workbench.store.labels import Labels, name_of, read_labels
from workbench.store.measured import verdict
from workbench.store.missing_text import NamedText
from workbench.store.origin import origin_of
from workbench.store.reached import reached
from workbench.store.state import ENDED_WELL, FINAL, STALLED, RunState, actual_status, read_state, silent_seconds
from workbench.telemetry.baselines import References, is_causal
from workbench.telemetry.columns import Columns, rising
from workbench.telemetry.streams import Record, number, stream_path

CORE = ("loss", "heldout_loss", "tokens_per_second", "mfu", "lr")
"""Scalars every page draws; scheduled knobs (their names hold a dot) come with them, the others when asked for."""
LAYER_COLUMNS = 1024
"""Heat-map columns kept per run; a page is not wider, so beyond twice that every second one goes."""
SAMPLE = 1500
"""Records that stand for all of a long run until it has been read."""
STATUS_LINES = 64
"""Status lines kept, to tell of a later one only what has changed."""
_STATE_KEYS = (
    "step",
    "progress",
    "tokens",
    "seconds",
    "loss",
    "heldout_loss",
    "tokens_per_second",
    "message",
    "error",
    "repeats",
    "attempt",
    "device",
)


class Track:
    """One run as columns.

    Attributes:
        columns: the scalars stream; a sample of it while :attr:`loading`.
        layer_steps: step of every kept heat-map column.
        layer_starts: whether a stage (see :func:`workbench.plots.activity.stage_starts`) starts at a kept column.
        layer_values: name -> list of float32 vectors, one entry per layer, NaN where there is none.
        lock: held by :meth:`poll`; take it to read columns from another thread.
        events: all events. status: the status line as last read, and status_sum: of its text.
    """

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        # Held while a poll changes columns: another thread may be drawing them.
        self.lock = threading.RLock()
        self._scalars_tail = Tail(stream_path(folder.telemetry, "scalars"))
        # A record of layers takes ten times as long per byte.
        self._layers_tail = Tail(stream_path(folder.telemetry, "layers"), PIECE_BYTES // 10)
        self._events_tail = Tail(stream_path(folder.telemetry, "events"))
        self._stamps: dict[str, tuple[int, int]] = {}
        self._steered_by: list[tuple[int, int] | None] = []
        self._steering: dict[str, Any] = {"lease": None}
        self._steering_until = math.inf
        self._looked_at_lock = -math.inf
        self._asked: tuple[RunState, str] | None = None
        self.clear()
        self.events: list[Record] = []
        self.status: dict[str, Any] = {"status": "queued"}
        self.status_sum = ""
        self._lines: dict[str, dict[str, Any]] = {}
        self.recipe: dict[str, Any] = {}
        self._labels = Labels()
        self._before = 0.0
        self._text = NamedText(folder)
        self._recorded: dict[str, dict[str, Any]] = {}

    def clear(self) -> None:
        """Forget all numbers; events and status stay."""
        self.columns = Columns()
        self._loading: Columns | None = None
        self._drawn: dict[str, tuple[int, np.ndarray, int]] = {}
        self.layer_steps: list[int] = []
        self.layer_starts: list[bool] = []
        self.layer_values: dict[str, list[np.ndarray]] = {}
        self._stride, self._phase, self._widest, self._retold = 1, 0, 0, 0
        self._stage: bytes | None = None

    @property
    def steps(self) -> np.ndarray:
        """Step of every record of scalars, (N,)."""
        return self.columns.clock("step")

    @property
    def loading(self) -> bool:
        """Return whether :attr:`columns` are a sample, since the whole is still being read."""
        return self._loading is not None

    @property
    def caught_up(self) -> bool:
        """Return whether all that had been written at the last :meth:`poll` is read."""
        return not (self.loading or self._scalars_tail.behind or self._layers_tail.behind or self._events_tail.behind)

    @property
    def name(self) -> str:
        """Return what people call the run; data from a user."""
        return name_of(self.folder, self.recipe, self._labels)

    @property
    def layers(self) -> int:
        """Layers of the finished model, as far as the records show; 0 before the first one."""
        return self._widest

    @property
    def final(self) -> bool:
        """Return whether the run has ended and all of it is read."""
        return self.status["status"] in FINAL and self.caught_up

    @property
    def version(self) -> str:
        """Name the state of the columns; it changes when a page needs everything again.

        That is: rows were taken back or downsampled, a column or the name is new. It follows from what the run's files
        hold alone: two processes that have read the same agree on it.
        """
        # Deltas name columns by their number in the last snapshot, so a new one needs a new snapshot.
        version = f"{self._retold}.{len(self.columns.names)}.{self.layers}.{len(self.layer_values)}"
        # And snapshots alone say what runs are called: those of one name are told apart, so it concerns all of them.
        version += f".{zlib.crc32(self._labels.name.encode())}"
        return f"{version}.1" if self.loading else version

    def names(self, extra: frozenset[str] = frozenset()) -> list[str]:
        """Return scalars to send: the core, scheduled knobs, and those a page asked for."""
        return [name for name in self.columns.names if name in CORE or "." in name or name in extra]

    def drawn(self, name: str, choose: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> tuple[np.ndarray, int]:
        """Return rows that draw a scalar of the whole run, and how many have it;
        chosen again only when rows were added.

        Args:
            name: of the scalar. choose: takes all steps and values, gives rows; always the same function.
        """
        rows, held = len(self.steps), self._drawn.get(name)
        if held is None or held[0] != rows:
            values = self.columns.values(name)
            held = rows, choose(self.steps, values), int(np.count_nonzero(~np.isnan(values)))
            self._drawn[name] = held
        return held[1], held[2]

    def status_since(self, status_sum: str) -> dict[str, Any]:
        """Return what has changed since the status line of this sum; all of it where that is long ago."""
        before = self._lines.get(status_sum, {})
        return {key: value for key, value in self.status.items() if key not in before or before[key] != value}

    def poll(self) -> None:
        """Read what is new. The status is read first: what a run said before it ended is then surely seen."""
        with self.lock:
            self._poll_status()
            self._poll_scalars()
            for record in self._layers_tail.read():
                self._add_layers(record)
            self.events += [event for event in self._events_tail.read() if "kind" in event]

    def _poll_scalars(self) -> None:
        # Beside the file itself: what is read in one piece needs no sample.
        if not len(self.columns) and not self.loading and self._scalars_tail.left() > 2 * PIECE_BYTES:
            self._loading = Columns()
            self.columns.extend(rising(self._scalars_tail.sample(SAMPLE)))
            return
        into = self.columns if self._loading is None else self._loading
        if into.extend(self._scalars_tail.read()):
            self._retold += 1
            self._drawn.clear()
        if self._loading is not None and not self._scalars_tail.behind:
            self.columns, self._loading = self._loading, None
            self._drawn.clear()

    def _poll_status(self) -> None:
        if self._changed("recipe"):
            self.recipe = read_object(self.folder.recipe)
        if self._changed("labels"):
            self._labels = read_labels(self.folder)
        for source in ("environment", "evaluations"):
            if self._changed(source):
                self._recorded[source] = read_object(getattr(self.folder, source))
        now = self._status_line(read_state(self.folder))
        if now != self.status:
            self.status, self.status_sum = now, f"{zlib.crc32(json.dumps(now, sort_keys=True).encode()):08x}"
            self._lines[self.status_sum] = now
            # Pages ask every few hundred milliseconds; one that was away longer is told all of it.
            while len(self._lines) > STATUS_LINES:
                del self._lines[next(iter(self._lines))]

    def _status_line(self, state: RunState) -> dict[str, Any]:
        # The lock is a system call per look; a second is soon enough to learn that a process died.
        if time.monotonic() - self._looked_at_lock > 1.0 or state.final:
            self._looked_at_lock = time.monotonic()
            self._actual = actual_status(self.folder, state)
        status = self._actual if self._actual in ("lost", STALLED) or state.final else state.status
        # Read once: a lost run writes no more.
        if (state, status) != self._asked:
            self._asked, self._reached = (state, status), reached(self.folder, state, status)
        line: dict[str, Any] = {key: finite(getattr(self._reached, key)) for key in _STATE_KEYS}
        line["status"] = status
        # An age, not a time of day: the page's clock may differ from ours. Whole steps of 5 s: no message per poll.
        line["message"] = message_of(self.folder, state, line["status"])
        line["silent_seconds"] = 5 * int(silent_seconds(state) // 5) if line["status"] == STALLED else 0
        evaluations, environment = (self._recorded.get(source, {}) for source in ("evaluations", "environment"))
        references = References.of(evaluations, environment, causal=is_causal(self.recipe))
        line["score"], line["levels"] = references.title, references.levels
        line["learned"] = references.learned(line["heldout_loss"])
        line["verdict"] = self._verdict(line, references)
        line["seconds_before"] = self._seconds_before()
        line["missing_text"] = self._text.missing(state, line["status"])
        return line | queue_facts(self.folder, line["status"]) | self._poll_steering()

    def _verdict(self, line: dict[str, Any], references: References) -> str:
        """Return the sentence that a run ends with: its loss, its baselines, what was learned; empty before its end."""
        loss = line["heldout_loss"]
        if line["status"] not in ENDED_WELL or not isinstance(loss, float):
            return ""
        levels = "".join(f", {name} {nats:.3f}" for name, nats in references.levels.items())
        return f"{line['score']} {loss:.3f} nats{levels}: {verdict(loss, references)}"

    def _poll_steering(self) -> dict[str, Any]:
        """Return the lease and the knobs; they are read again when a file of theirs changed, or the lease ran out."""
        files = [_stamp(path) for path in (self.folder.knobs, self.folder.lease, self.folder.checkpoints)]
        if files != self._steered_by or time.monotonic() >= self._steering_until:
            self._steered_by, self._steering = files, steering(self.folder)
            lease = self._steering["lease"]
            self._steering_until = time.monotonic() + lease["seconds"] if lease else math.inf
        return self._steering

    def _seconds_before(self) -> float:
        """Return seconds of training that a fork has from the run it goes on from."""
        if self._changed("origin"):
            origin = origin_of(self.folder)
            self._before = origin.seconds if origin else 0.0
        return self._before

    def _changed(self, part: str) -> bool:
        stamp = _stamp(getattr(self.folder, part))
        if stamp is None:
            return False
        changed = self._stamps.get(part) != stamp
        self._stamps[part] = stamp
        return changed

    def _add_layers(self, record: Record) -> None:
        if "rewind" in record:
            self._cut_layers(record["rewind"])
            return
        # The last of `stride` records is kept: "last in pixel" is what the heat map draws. And the first of a stage,
        # or one of a few records would never be seen.
        starts = self._starts_stage(record)
        self._phase = (self._phase + 1) % self._stride
        if self._phase and not starts:
            return
        place = len(self.layer_steps)
        self.layer_steps.append(int(record["step"]))
        self.layer_starts.append(starts)
        width = max((len(v) for v in record.values() if isinstance(v, list)), default=0)
        self._widest = max(self._widest, width)
        for name, vector in record.items():
            if isinstance(vector, list):
                columns = self.layer_values.setdefault(name, [])
                # One vector, shared by all of these columns: none is ever written to again.
                columns.extend([np.full(width, np.nan, np.float32)] * (place - len(columns)))
                columns.append(_vector(vector))
        for columns in self.layer_values.values():
            columns.extend([np.full(width, np.nan, np.float32)] * (place + 1 - len(columns)))
        if place + 1 >= 2 * LAYER_COLUMNS:
            self._downsample()

    def _starts_stage(self, record: Record) -> bool:
        state = record.get("state")
        if not isinstance(state, list):
            return False
        before, self._stage = self._stage, _stage_of(_vector(state))
        # With a stage every few records there is no short one to protect, and nothing would ever go.
        return before not in (None, self._stage) and 2 * sum(self.layer_starts) <= LAYER_COLUMNS

    def _downsample(self) -> None:
        # The later of each pair, as the stride above keeps the last of its records.
        kept = [i for i, starts in enumerate(self.layer_starts) if i % 2 or starts]
        self.layer_steps = [self.layer_steps[i] for i in kept]
        self.layer_starts = [self.layer_starts[i] for i in kept]
        self.layer_values = {name: [columns[i] for i in kept] for name, columns in self.layer_values.items()}
        self._stride, self._phase = 2 * self._stride, 0
        self._retold += 1

    def _cut_layers(self, step: int) -> None:
        """Forget the layers after ``step``: a resumed run starts there again."""
        columns = sum(1 for _ in self.layer_steps if _ <= step)
        del self.layer_steps[columns:], self.layer_starts[columns:]
        for vectors in self.layer_values.values():
            del vectors[columns:]
        states = self.layer_values.get("state")
        self._stage = _stage_of(states[-1]) if states else None
        self._retold += 1


def _stamp(path: Path) -> tuple[int, int] | None:
    """Changes with a file, or with a folder's entries; None if it does not exist."""
    try:
        found = path.stat()
    except OSError:
        return None
    # One stat instead of a read: these files are looked at ten times a second and change a few times an hour. The size
    # tells two writes apart that a coarse clock gives one time.
    return found.st_mtime_ns, found.st_size


def _stage_of(state: np.ndarray) -> bytes:
    """Return what stays the same within a stage: equal bytes, same stage."""
    return settled(state_codes(state)).tobytes()


def _vector(values: list[Any]) -> np.ndarray:
    with np.errstate(over="ignore"):  # 1e300 becomes infinity
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            return np.array(values, np.float32)
        return np.array([number(value) for value in values], np.float32)
