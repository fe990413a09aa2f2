"""Rows of a run for other tools: scalars and layers by step, without what a resumed run has taken back."""

from __future__ import annotations

import heapq
import itertools
import json
import operator
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from workbench.base.json_lines import Record, Tail, number
from workbench.store.folder import RunFolder, read_object
from workbench.store.state import FINAL, actual_status, read_state
from workbench.telemetry.streams import read_events, stream_path

FLUSHED_SECONDS = 0.3
"""A writer brings all streams to one step within 0.1 s; so long is waited between looking and reading."""
_NOT_VALUES = ("seq", "step")


class Row(NamedTuple):
    """Numbers of one step.

    Attributes:
        step: of the optimizer. time: Unix seconds: when the run began to train plus its seconds of training.
        values: by name, with ``seconds``, ``tokens`` and ``flops``; one value per layer as ``layer_NAME/03``.
    """

    step: int
    time: float
    values: dict[str, float]


class Kept:
    """Records of one stream that no rewind takes back; memory holds one piece of the file at a time.

    Args:
        path: of the stream. piece: bytes read at once.

    Attributes:
        rewound: lowest step that the records read last went back to; None where they only went on.
    """

    def __init__(self, path: Path, **piece: int) -> None:
        # Two passes: what is taken back is known only after what takes it back.
        self._ahead, self._tail = Tail(path, **piece), Tail(path, **piece)
        self.rewound: int | None = None

    def new(self) -> Iterator[Record]:
        """Yield the records that came since the last call, in the order of their steps."""
        rewinds = [record["rewind"] for record in _all(self._ahead) if "rewind" in record]
        # bounds[i]: the last step that survives all rewinds from the i-th on.
        bounds = list(itertools.accumulate(reversed(rewinds), min))[::-1]
        self.rewound = bounds[0] if bounds else None
        return self._surviving(bounds)

    def _surviving(self, bounds: list[int]) -> Iterator[Record]:
        passed = 0
        for record in _all(self._tail):
            if "rewind" in record:
                passed += 1
            elif passed >= len(bounds) or record["step"] <= bounds[passed]:
                yield record


class Source:
    """Follows one run for a tool.

    Args:
        folder: of the run.
    """

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self._streams = {name: Kept(stream_path(folder.telemetry, name)) for name in ("scalars", "layers")}
        self._held: list[Row] = []
        self._began = began(folder)
        self.rewound: int | None = None
        """Lowest step that the rows of the last :meth:`rows` went back to, else None."""

    def rows(self) -> tuple[bool, Iterator[Row]]:
        """Return True if the run has ended, and its rows since the last call, one per step in their order."""
        ended = actual_status(self.folder) in FINAL
        newest = None if ended else _last_step(stream_path(self.folder.telemetry, "scalars"))
        if not ended:
            time.sleep(FLUSHED_SECONDS)
        new = {name: stream.new() for name, stream in self._streams.items()}
        rewinds = [stream.rewound for stream in self._streams.values() if stream.rewound is not None]
        self.rewound = min(rewinds, default=None)
        held, self._held = self._held, []
        if self.rewound is not None:
            held = [row for row in held if row.step <= self.rewound]
        rows = heapq.merge(
            held, map(self._scalars, new["scalars"]), map(self._layers, new["layers"]), key=operator.itemgetter(0)
        )
        return ended, self._up_to(newest, rows)

    def _up_to(self, newest: int | None, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield one row per step; those beyond a step are held back, since the other stream may still lack it."""
        for step, group in itertools.groupby(rows, operator.itemgetter(0)):
            same = list(group)
            if newest is None or step <= newest:
                # The first record of a step counts: an evaluation comes with a later time of training.
                values = {name: value for row in reversed(same) for name, value in row.values.items()}
                yield Row(step, self._began + values.get("seconds", 0.0), values)
            else:
                self._held += same

    def _scalars(self, record: Record) -> Row:
        values = {
            name: number(value) for name, value in record.items() if name not in _NOT_VALUES and value is not None
        }
        return Row(record["step"], self._began, values)

    def _layers(self, record: Record) -> Row:
        values = {
            f"layer_{name}/{index:02d}": number(value)
            for name, vector in record.items()
            if isinstance(vector, list)
            for index, value in enumerate(vector)
            if value is not None
        }
        return Row(record["step"], self._began, values)


def began(folder: RunFolder) -> float:
    """Return the Unix time at which a run began to train, as well as it is known."""
    events = read_events(folder.telemetry)
    known = (read_state(folder).started, number(events[0].get("time")) if events else 0.0,
             number(read_object(folder.launched).get("time")))  # fmt: skip
    return next((each for each in known if each > 0), 0.0)


def flat(value: Any, path: str = "") -> dict[str, bool | int | float | str]:
    """Return the knobs of a recipe by path; lists as JSON, None as an empty text.

    Example:
        >>> flat({"optimizer": {"kind": "lans", "lr": 0.001}, "seed": 0})
        {'optimizer.kind': 'lans', 'optimizer.lr': 0.001, 'seed': 0}
    """
    if isinstance(value, dict):
        return {key: item for name, inner in value.items() for key, item in flat(inner, f"{path}.{name}").items()}
    plain = value if isinstance(value, bool | int | float | str) else "" if value is None else json.dumps(value)
    return {path.removeprefix("."): plain}


def _all(tail: Tail) -> Iterator[Record]:
    yield from tail.read()
    while tail.behind:
        yield from tail.read()


def _last_step(path: Path) -> int:
    try:
        last = Tail(path).sample(1)[-1]
    except (OSError, IndexError):
        return -1
    return int(last["rewind"] if "rewind" in last else last["step"])
