"""Signs of life of several processes: each beside the first writes what it does, and the first names who keeps it."""

from __future__ import annotations

import contextlib
import threading
import time

from workbench.choices.execution.ranks import Ranks, waiting_seconds
from workbench.store.folder import RunFolder, read_json, write_json

EVERY_SECONDS = 2.0
SILENT_SECONDS = 10.0
"""A process that writes nothing for so long is stopped, or its machine is."""
PATIENCE_SECONDS = 20.0
"""A wait of the first process that is longer is told, with who keeps it."""


class Signs:
    """Writes the signs of one process beside the first, in a thread of its own; a context.

    Args:
        folder: of the run. ranks: which process this is.
    """

    def __init__(self, folder: RunFolder, ranks: Ranks) -> None:
        self._path, self._closed = folder.sign_of(ranks.rank), threading.Event()
        threading.Thread(target=self._write, name="signs", daemon=True).start()

    def __enter__(self) -> Signs:
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()

    def _write(self) -> None:
        written = 0
        while not self._closed.wait(EVERY_SECONDS):
            written += 1
            # A folder that is gone ends the run by itself.
            with contextlib.suppress(OSError):
                write_json(self._path, {"written": written, "waits": waiting_seconds() > 0}, durable=False)


class Watch:
    """Reads the signs of the other processes, in the first one.

    Args:
        folder: of the run. ranks: how many there are.
    """

    def __init__(self, folder: RunFolder, ranks: Ranks) -> None:
        self._folder, self._ranks = folder, ranks
        self._seen: dict[int, tuple[int, float]] = {}

    def told(self) -> str:
        """Return for whom this process has been waiting too long, in words; empty where it has not.

        Called again and again: what it did not see change between two calls is silent, whatever clocks say.
        """
        now, busy, silent = time.monotonic(), [], []
        for rank in range(1, self._ranks.size):
            sign = read_json(self._folder.sign_of(rank), {})
            written, waits = int(sign.get("written", 0)), bool(sign.get("waits"))
            before, since = self._seen.get(rank, (-1, now))
            self._seen[rank] = written, since if written == before else now
            if now - self._seen[rank][1] > SILENT_SECONDS:
                silent.append(str(rank))
            elif not waits:
                busy.append(str(rank))
        waited = waiting_seconds()
        if waited < PATIENCE_SECONDS:
            return ""
        who = f"of {self._ranks.size} for {waited:.0f} s"
        if silent:
            return f"waiting for process {', '.join(silent)} {who}: no sign of life from there"
        if busy:
            return f"waiting for process {', '.join(busy)} {who}: it computes"
        return f"all {self._ranks.size} processes have waited for each other for {waited:.0f} s: look at the network"
