"""Runs kept as columns for as long as somebody asks; they are read when asked, and at no other time."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from workbench.jupyter.feed import wire
from workbench.jupyter.feed.track import Track
from workbench.store.folder import RunFolder

MOST_RUNS = 32
"""Runs kept at once: columns of a million records with 21 scalars take 116 MB."""
IDLE_SECONDS = 120.0
# Several pages that ask within one frame of each other share one look at the files.
_FRESH_SECONDS = 0.05


@dataclass
class _Followed:
    track: Track
    lock: threading.Lock = field(default_factory=threading.Lock)
    read_at: float = 0.0
    asked_at: float = 0.0


class Follower:
    """Tails runs on behalf of any number of pages.

    Args:
        most: runs kept at once, those asked for last. idle_seconds: one that nobody asks for is forgotten after this.
    """

    def __init__(self, most: int = MOST_RUNS, idle_seconds: float = IDLE_SECONDS) -> None:
        self._most, self._idle = most, idle_seconds
        self._followed: OrderedDict[Path, _Followed] = OrderedDict()
        self._lock = threading.Lock()
        self._sweep: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._followed)

    def message(self, folders: Sequence[RunFolder], since: str = "", extra: frozenset[str] = frozenset()) -> bytes:
        """Return the news for a page, sealed (see :mod:`workbench.jupyter.feed.wire`). Reads files:
        call it from a thread.

        Args:
            folders: the runs, none of them twice, in the page's order.
            since: the ``cursor`` of the last message that the page has taken; empty for everything.
            extra: scalars beyond the core that it wants.

        Returns:
            A snapshot, a delta or a beat; its header holds the next cursor.

        Raises:
            OSError: a run cannot be read, or holds what no trainer writes.
        """
        followed = [self._follow(folder) for folder in folders]
        with ExitStack() as held:
            # Always in one order, or two pages with the same two runs could each wait for the other.
            for one in sorted(followed, key=lambda one: one.track.folder.path):
                held.enter_context(one.lock)
            for one in followed:
                self._read(one)
            fresh = wire.update([one.track for one in followed], since, extra)
            return wire.sealed(*(fresh or ({"type": "beat", "cursor": since}, b"")))

    def sweep_later(self) -> None:
        """Forget idle runs in time; to be called on the server's loop after each question."""
        # One timer while there is something to forget; a server that nobody asks has none.
        if self._sweep is None and self._followed:
            self._sweep = asyncio.get_running_loop().call_later(self._idle, self._forget_idle)

    def _forget_idle(self) -> None:
        self._sweep = None
        with self._lock:
            now = time.monotonic()
            for path in [p for p, one in self._followed.items() if now - one.asked_at >= self._idle]:
                del self._followed[path]
        self.sweep_later()

    def _read(self, one: _Followed) -> None:
        if time.monotonic() - one.read_at <= _FRESH_SECONDS:
            return
        try:
            one.track.poll()
        except Exception as error:
            # Columns may be of different lengths now: the next question reads the run from its beginning.
            with self._lock:
                self._followed.pop(one.track.folder.path, None)
            text = f"reading run '{one.track.folder.id}' failed: {type(error).__name__}: {error}"
            raise OSError(text) from error
        one.read_at = time.monotonic()

    def _follow(self, folder: RunFolder) -> _Followed:
        with self._lock:
            one = self._followed.get(folder.path)
            if one is None:
                one = self._followed[folder.path] = _Followed(Track(folder))
            one.asked_at = time.monotonic()
            self._followed.move_to_end(folder.path)
            # Whoever is reading a forgotten one still holds it; the next question starts it again.
            while len(self._followed) > self._most:
                self._followed.popitem(last=False)
            return one
