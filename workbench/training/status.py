"""The trainer's side of ``state.json``: transitions at once, a heartbeat every second."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from workbench.base.json_lines import finite
from workbench.store.folder import RunFolder
from workbench.store.full_disk import unwritable
from workbench.store.state import PREPARING, write_state

if TYPE_CHECKING:
    from workbench.training.loop import Training
    from workbench.training.signs import Watch

HEARTBEAT_SECONDS = 1.0
SUSPENDED_SECONDS = 5.0
"""A heartbeat that is this late was suspended, and the whole process with it (SIGSTOP, a frozen machine)."""


class FolderRemoved(FileNotFoundError):
    """The folder of a run is gone, or another one stands in its place."""


class Status:
    """Writes the state of one run, from the trainer's main thread and its heartbeat.

    Attributes:
        stages: of the start, in order: seconds of each that has ended.
    """

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self.stages: dict[str, float] = {}
        self._stage = ("", 0.0)
        self._training: Training | None = None
        self._watch: Watch | None = None
        self._waits = False
        self._mark = _inodes(folder)
        self._unwritten: dict[str, Any] = {}
        # Of main thread and heartbeat: an older word must never be written after a newer one.
        self._one_at_a_time = threading.Lock()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._thread.start()

    @property
    def step(self) -> int:
        """Optimizer steps done, as far as anybody knows."""
        return self._training.progress.step if self._training is not None else 0

    @property
    def starting(self) -> bool:
        """True while a stage of the start is under way, or before the first one begins."""
        return not self._closed.is_set() and (bool(self._stage[0]) or not self.stages)

    def follow(self, training: Training) -> None:
        """From now on every write says where ``training`` stands, and which other process it waits for."""
        from workbench.training.signs import Watch

        self._training, ranks = training, training.engine.ranks
        self._watch = Watch(self._folder, ranks) if ranks.size > 1 else None

    def stage(self, name: str, detail: str = "", *, began: float | None = None, **changes: Any) -> None:
        """Begin a stage of the start, and end the one before; shown while it lasts.

        Args:
            name: what is done now; empty when the start is over.
            detail: more of it, for people.
            began: moment of :func:`time.monotonic`, where it began before this call.
            changes: of the state, beside its message.
        """
        now, (ended, since) = time.monotonic(), self._stage
        if ended:
            self.stages[ended] = round(self.stages.get(ended, 0.0) + now - since, 3)
        self._stage = (name, now if began is None else began)
        self.write(message=f"{name} ({detail})" if detail else name, **changes)

    def prepare(self, line: str) -> None:
        """Say what is being prepared, which takes a time that nobody knows."""
        self.write(message=PREPARING + line)

    def write(self, **changes: Any) -> None:
        """A transition, made durable (see :func:`workbench.store.state.write_state`).

        On a disk so full that the reserve does not help, or read-only, the heartbeat writes it as soon as it can.

        Raises:
            OSError: the folder is gone.
        """
        try:
            self._write(durable=True, **changes)
        except OSError as error:
            if not unwritable(error):
                raise

    def check_folder(self) -> None:
        """Look whether the run's folder is still the one that the run began in; two system calls.

        Raises:
            FolderRemoved: somebody has deleted, moved or replaced it, or its lock; nothing may be written there now.
        """
        if _inodes(self._folder) != self._mark:
            raise FolderRemoved(
                errno.ENOENT, "the run's folder was deleted or moved while it trained, so the run ends", self._folder.id
            )

    def close(self) -> None:
        """Let the heartbeat end; the last word has been written."""
        self._closed.set()
        self._thread.join(timeout=5)

    def _beat(self) -> None:
        began = time.monotonic()
        while not self._closed.wait(HEARTBEAT_SECONDS):
            late = time.monotonic() - began - HEARTBEAT_SECONDS
            if late > SUSPENDED_SECONDS and self._training is not None:
                self._training.suspended_seconds += late
            # A full disk or a folder that is gone must not end the heartbeat: the next one may succeed.
            with contextlib.suppress(OSError):
                self._write(durable=False, **self._waiting())
            began = time.monotonic()

    def _waiting(self) -> dict[str, str]:
        """Return a message where the other processes are waited for too long, and an empty one when that is over."""
        text = self._watch.told() if self._watch is not None else ""
        if text and not self._waits:
            print(text, file=sys.stderr, flush=True)
        told = {"message": text} if text or self._waits else {}
        self._waits = bool(text)
        return told

    def _write(self, *, durable: bool, **changes: Any) -> None:
        with self._one_at_a_time:
            self._unwritten |= changes
            self.check_folder()
            write_state(self._folder, durable=durable, **self._where(), **self._unwritten)
            self._unwritten.clear()

    def _where(self) -> dict[str, Any]:
        now: dict[str, Any] = {"heartbeat": time.time(), "heartbeat_monotonic": time.monotonic()}
        if self._training is None:
            return now
        progress, recorder = self._training.progress, self._training.recorder
        return now | {
            "step": progress.step,
            "progress": progress.fraction,
            "tokens": progress.tokens,
            "seconds": round(progress.seconds, 4),
            "loss": finite(recorder.loss),
            "tokens_per_second": finite(recorder.tokens_per_second),
        }


def _inodes(folder: RunFolder) -> tuple[tuple[int, int] | None, ...]:
    """Return the inodes of the folder at a run's path and of its lock, None for a missing one.

    The lock too: while a folder is being deleted file by file, its path alone proves nothing.
    """
    found: list[tuple[int, int] | None] = []
    for path in (folder.path, folder.lock):
        try:
            status = os.stat(path, follow_symlinks=False)
            found.append((status.st_dev, status.st_ino))
        except FileNotFoundError:
            found.append(None)
    return tuple(found)
