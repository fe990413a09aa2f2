"""Cursors say how far a page has read, as text; whoever serves the page remembers nothing of it.

Any number of pages may so be fed from one :class:`~workbench.jupyter.feed.track.Track` per run, each from where it
stands, and go on after whoever fed them was restarted: a cursor counts what stands in the run's own files.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workbench.jupyter.feed.track import Track
from workbench.telemetry.streams import Record

# More new rows than this (a laptop that slept) are larger than a decimated snapshot of everything.
DELTA_ROWS = 4000
_MARK = re.compile(r"([0-9.]{7,64})-([0-9]{1,12})-([0-9]{1,12})-([0-9]{1,12})-([0-9a-f]{8}|)")


@dataclass(frozen=True)
class News:
    """The part of a run that was read beyond a cursor.

    Attributes:
        first_row: index of the first new row of scalars.
        first_column: index of the first new heat-map column.
        events: new events as written.
        changes: entries of the status line that changed.
    """

    first_row: int
    first_column: int
    events: list[Record]
    changes: dict[str, Any]


@dataclass(frozen=True)
class _Mark:
    """A place in one run: version of its columns; rows, heat-map columns and events seen; sum of the status line."""

    version: str
    rows: int
    columns: int
    events: int
    status: str

    @classmethod
    def of(cls, track: Track) -> _Mark:
        return cls(track.version, len(track.steps), len(track.layer_steps), len(track.events), track.status_sum)

    @classmethod
    def parse(cls, text: str) -> _Mark | None:
        found = _MARK.fullmatch(text)
        return cls(found[1], int(found[2]), int(found[3]), int(found[4]), found[5]) if found else None

    def __str__(self) -> str:
        return f"{self.version}-{self.rows}-{self.columns}-{self.events}-{self.status}"

    def within(self, other: _Mark) -> bool:
        """Return whether what lies between this place and the other can be told by itself."""
        return (
            self.version == other.version
            and self.rows <= other.rows
            and self.columns <= other.columns
            and self.events <= other.events
        )


def cursor(tracks: Sequence[Track], extra: frozenset[str] = frozenset()) -> str:
    """Return the place at the end of all that has been read of these runs; letters, digits and ``.-_`` only.

    Args:
        tracks: the runs, in the page's order.
        extra: scalars beyond the core that the page asked for; with other ones it needs everything again.
    """
    return "_".join([_question(tracks, extra), *(str(_Mark.of(track)) for track in tracks)])


def news_since(tracks: Sequence[Track], since: str, extra: frozenset[str] = frozenset()) -> list[News] | None:
    """Return what has been read beyond a cursor, one entry per run.

    Args:
        tracks: the runs. since: from :func:`cursor`; empty of a page that has nothing. extra: as there.

    Returns:
        None when only everything will do: rows were taken back since or are too many, or the cursor is of other runs,
        or none at all.
    """
    question, *texts = since.split("_")
    if question != _question(tracks, extra) or len(texts) != len(tracks):
        return None
    news = []
    for track, text in zip(tracks, texts, strict=True):
        mark, present = _Mark.parse(text), _Mark.of(track)
        if mark is None or not mark.within(present):
            return None
        changes = track.status_since(mark.status) if mark.status != present.status else {}
        news.append(News(mark.rows, mark.columns, track.events[mark.events :], changes))
    rows = sum(len(track.steps) - found.first_row for track, found in zip(tracks, news, strict=True))
    return None if rows > DELTA_ROWS else news


def _question(tracks: Sequence[Track], extra: frozenset[str]) -> str:
    """Return deltas name runs and columns by number, so they make sense only for the same runs and columns."""
    subject = "\n".join([*(str(track.folder.path) for track in tracks), "", *sorted(extra)])
    return f"{zlib.crc32(subject.encode('utf-8', 'surrogatepass')):08x}"
