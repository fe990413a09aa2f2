"""The reader thread: tails the runs' folders and tells the page what is new, at most ten times a second.

A plain daemon thread on purpose: an asyncio task stands still under a blocking cell, and the run folder is the truth,
so the thread may end, or die with the kernel, without anything being lost. It prints nothing.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from workbench.jupyter.feed import wire
from workbench.jupyter.feed.track import Track
from workbench.store.folder import RunFolder

Send = Callable[[dict[str, Any], list[bytes]], None]
# Ten messages a second look continuous, and one of them costs the page some 30 ms (measured, heat map of 48 layers).
PERIOD_SECONDS = 0.1
# Before any page has asked there is only the saved snapshot to be kept fresh.
_IDLE_SECONDS = 0.5
_BEAT_SECONDS = 5.0
# Each costs 32 kB of traffic, for a moment at which nobody may save the notebook.
_SNAPSHOT_SECONDS = 20.0


class Feed:
    """Follows runs for one widget.

    Args:
        send: takes a header and buffers to the page; called from the thread, never by two at once.
        keep: takes a new snapshot (see :func:`workbench.jupyter.feed.wire.saved_snapshot`); called from the thread.
        ended: called from the thread when every run has a final status and everything was sent.
        period_seconds: shortest time between two messages.
    """

    def __init__(
        self,
        folders: Sequence[RunFolder],
        send: Send,
        keep: Callable[[bytes], None] | None = None,
        ended: Callable[[], None] | None = None,
        period_seconds: float = PERIOD_SECONDS,
    ) -> None:
        self.tracks = [Track(folder) for folder in folders]
        self._send, self._keep, self._ended = send, keep, ended
        self._period = period_seconds
        self._extra: frozenset[str] = frozenset()
        self._watched = False
        # How far the pages have been told; empty while one of them wants everything.
        self._told = ""
        self._coming: list[RunFolder] | None = None
        self._questions: dict[int, tuple[list[Any], list[str], int]] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        # The latter in the past, so that the first round already leaves a snapshot.
        self._last_sent, self._last_kept = time.monotonic(), -_SNAPSHOT_SECONDS
        self._complaint = ""

    @property
    def running(self) -> bool:
        """Return whether the thread is alive."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def watched(self) -> bool:
        """Return whether a page has ever asked for anything."""
        return self._watched

    def start(self) -> None:
        """Start the thread unless it runs; after it stopped, this picks up where it was (a resumed run)."""
        with self._lock:
            if not self.running and not self._closed.is_set():
                self._thread = threading.Thread(target=self._run, name="workbench-feed", daemon=True)
                self._thread.start()

    def resync(self, extra: Sequence[str] = ()) -> None:
        """Serve a page that mounted or missed a message: send everything soon, and from now on what is new.

        Args:
            extra: scalars beyond the usual ones that it wants to draw.
        """
        # Only ever more: several pages may watch one kernel, and none says when it goes.
        self._extra |= frozenset(extra)
        # Before the thread is woken or started, so that either way it sees them.
        with self._lock:
            self._watched, self._told = True, ""
        self._wake.set()
        self.start()

    def detail(self, ask: int, spans: Sequence[Any], names: Sequence[str], points: int) -> None:
        """Take a page's question for a stretch in detail, or for every record; the feed's thread answers.

        Args:
            ask: number of the question; those of windows count upwards, and only the last of them is answered.
            spans, names, points: as in :func:`workbench.jupyter.feed.wire.detail`.
        """
        with self._lock:
            for older in [number for number in self._questions if 0 < number < ask]:
                del self._questions[older]
            self._questions[ask] = (list(spans), list(names), points)
        self._wake.set()
        self.start()

    def follow(self, folders: Sequence[RunFolder]) -> None:
        """Follow these runs from the next round on; the page gets everything anew.

        Of a run that stays nothing is read again.
        """
        with self._lock:
            self._coming = list(folders)
        self._wake.set()
        self.start()

    def close(self, timeout: float = 2.0) -> None:
        """End the thread and forget everything read."""
        self._closed.set()
        self._wake.set()
        thread = self._thread
        # `ended` is called by the thread itself and may close the widget; no thread can join itself.
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)
        for track in self.tracks:
            track.clear()

    def _run(self) -> None:
        while not self._closed.is_set():
            started = time.monotonic()
            try:
                if self._round(started):
                    return
            except Exception as error:  # the page is the only place where a user would see it
                self._complain(f"{type(error).__name__}: {error}")
            self._rest(started)

    def _round(self, started: float) -> bool:
        """Return one look at all runs; True when the thread has nothing left to do."""
        self._change()
        # A poll reads the status before the streams, so a final status means that the last word was read too.
        for track in self.tracks:
            track.poll()
        if self._closed.is_set():
            return True
        told = self._tell()
        ended = all(track.final for track in self.tracks)
        if told:
            self._last_sent = started
        elif self._watched and started - self._last_sent > _BEAT_SECONDS:
            # Lets the page tell a quiet run from a kernel that is gone.
            self._last_sent = started
            self._send({"type": "beat", "cursor": self._told}, [])
        self._answer()
        if self._keep and (ended or started - self._last_kept > _SNAPSHOT_SECONDS):
            self._last_kept = started
            self._keep(wire.saved_snapshot(self.tracks))
        return ended and self._finish()

    def _change(self) -> None:
        """Take other runs, if that was asked. Here alone: a message is of as many runs as were looked at."""
        with self._lock:
            coming, self._coming = self._coming, None
        if coming is None:
            return
        held = {track.folder.path: track for track in self.tracks}
        self.tracks = [held.pop(folder.path) if folder.path in held else Track(folder) for folder in coming]
        for track in held.values():
            track.clear()

    def _complain(self, text: str) -> None:
        if text != self._complaint:
            self._complaint = text
            with contextlib.suppress(Exception):  # without a page there is nobody to tell
                self._send({"type": "notice", "error": True, "text": f"reading the run failed, trying on: {text}"}, [])
        self._closed.wait(1.0)

    def _finish(self) -> bool:
        with self._lock:
            # A page that asked in the meantime must not wait for a thread that has just decided to end.
            if (self._watched and not self._told) or self._questions or self._coming is not None:
                return False
            self._thread = None
        if self._ended:
            self._ended()
        return True

    def _rest(self, started: float) -> None:
        period = self._period if self._watched else max(self._period, _IDLE_SECONDS)
        if not self._wake.wait(max(0.0, period - (time.monotonic() - started))):
            return
        self._wake.clear()
        # Even an eager page gets no more than one message per period.
        self._closed.wait(max(0.0, self._period - (time.monotonic() - started)))

    def _answer(self) -> None:
        with self._lock:
            questions, self._questions = self._questions, {}
        for ask, (spans, names, points) in questions.items():
            header, block = wire.detail(self.tracks, ask, spans, names, points)
            self._send(header, [block])

    def _tell(self) -> bool:
        """Send what is new, if there is a page to see it; True when something was sent."""
        if not self._watched:
            return False
        since = self._told
        fresh = wire.update(self.tracks, since, self._extra)
        if fresh is None:
            return False
        header, block = fresh
        self._send(header, [block])
        with self._lock:
            # A page that asked while this was being made gets its own.
            self._told = header["cursor"] if self._told == since else ""
        return True
