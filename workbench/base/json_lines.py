"""A file of JSON lines that somebody appends to: the whole lines that are new, a bounded piece at a time.

A run of weeks has written hundreds of megabytes before a page first asks: read in one go, they would stop everything
else in a kernel for half a minute.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import orjson

Record = dict[str, Any]
LAST_STEP = 2**53
"""Beyond it a float no longer tells two steps apart, and curves are floats."""
PIECE_BYTES = 6_000_000
"""Read at once: some 0.1 s of parsing."""
# A line is some hundred bytes, one of a model of a hundred layers ten thousand.
_SAMPLE_BYTES = 1 << 14


class Tail:
    """Follows one file of JSON lines by byte offset; never sees half a line.

    Args:
        path: of the file; it may not exist yet. piece: bytes read at once.

    Attributes:
        behind: bytes that :meth:`read` has left for later.
    """

    def __init__(self, path: Path, piece: int = PIECE_BYTES) -> None:
        self.path, self.behind = path, 0
        self._piece, self._offset = piece, 0

    def read(self) -> list[Record]:
        """Return the next records, oldest first; those of at most one piece."""
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, 2)
                file.seek(self._offset)
                block = file.read(self._piece)
                # One line longer than a piece: with the rest of it, or it would never be got past.
                while b"\n" not in block and (more := file.read(self._piece)):
                    block += more
        except FileNotFoundError:
            return []
        # The writer may be in the middle of a line: its beginning is read again next time, with the rest.
        whole = block.rfind(b"\n") + 1
        self._offset += whole
        self.behind = size - self._offset if whole else 0
        return parsed(block[:whole])

    def left(self) -> int:
        """Return bytes of the file that are not read yet."""
        try:
            return max(0, self.path.stat().st_size - self._offset)
        except OSError:
            return 0

    def sample(self, count: int) -> list[Record]:
        """Return about ``count`` records spread evenly over all that is not read yet, and the last one;
        reads few bytes.
        """
        first, size = self._offset, self._offset + self.left()
        records: list[Record] = []
        with self.path.open("rb") as file:
            for part in range(count):
                file.seek(first + (size - first) * part // count)
                # The line at such a place has lost its beginning, unless it is the first one of all.
                lines = file.read(_SAMPLE_BYTES).split(b"\n")
                records += parsed(b"\n".join(lines[bool(part) : bool(part) + 1]))
            file.seek(max(first, size - _SAMPLE_BYTES))
            records += parsed(file.read(_SAMPLE_BYTES).rpartition(b"\n")[0])[-1:]
        return records


def parsed(block: bytes) -> list[Record]:
    """Return records of whole lines; damaged lines, and those without a step, are left out.

    Example:
        >>> parsed(b'{"step":1,"loss":2.5}\\n{"rewind":0}\\n{"torn')
        [{'step': 1, 'loss': 2.5}, {'rewind': 0}]
    """
    block = block.rstrip(b"\n")
    if not block:
        return []
    try:
        # One call for all: a third faster than one for each.
        found = orjson.loads(b"[" + block.replace(b"\n", b",") + b"]")
    except ValueError:
        found = None
    # Damaged lines that fit together by chance are no record either.
    if found is None or len(found) != block.count(b"\n") + 1:
        found = [_record(line) for line in block.split(b"\n")]
    # Curves and rewinds go by the step: a record without one has no place, nor one beyond what a curve can hold.
    return [r for r in found if isinstance(r, dict) and _is_step(r.get("rewind", r.get("step"))) and _is_event(r)]


def _is_step(value: Any) -> bool:
    return isinstance(value, int) and -LAST_STEP < value < LAST_STEP


def _is_event(record: Record) -> bool:
    """Return True for what is no event, too."""
    return isinstance(record.get("kind", ""), str) and isinstance(record.get("text", ""), str)


def _record(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None  # a damaged line (a bad disk) must not hide the rest of the run


def number(value: Any) -> float:
    """Return a scalar as a float again (``"nan"`` and ``"inf"`` travel as strings, JSON has no word for them).

    NaN for what is no number, or beyond every float: a damaged file has no curve there.
    """
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def finite(value: Any) -> Any:
    """Return a value as JSON can say it, at any depth: arrays as lists, None for NaN and infinities."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
