"""What the last look at the queue found, in a small file: of a thousand that wait, one reads tickets, the others this.

It is derived: who finds it missing, damaged or older than the folder looks itself and writes it anew. Each user has a
file of their own, since nobody trusts what others write. It is read and written under the queue's lock.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from workbench.store.folder import parsed_json

# File systems count time in ticks of up to 10 ms: what changed within the same one looks as it did before.
SETTLED_NS = 20_000_000
FIRST = 10
_LIMIT_BYTES = 1 << 18


@dataclass(frozen=True)
class Front:
    """What a look found; tickets by the names of their files.

    Attributes:
        changed: when the folder had changed last, as the look began, in nanoseconds. looked: when it began.
        held: on whom it depends as long as a process holds them: whose turn it is, whose turn has come, and the one
            that needs more than is free and holds up the others.
        next: whose turn has come, and who have not taken it yet.
        first: the first :data:`FIRST` in line.
    """

    changed: int
    looked: int
    held: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    first: tuple[str, ...] = ()

    @property
    def settled(self) -> bool:
        """Whether a change after the look would be seen as one."""
        return self.looked > self.changed + SETTLED_NS

    def position(self, file: str) -> int:
        """Of a ticket in line; those further behind count as the next after the first ones."""
        return 1 + (self.first.index(file) if file in self.first else len(self.first))


def begin_look(folder: Path) -> tuple[int, int]:
    """When a queue's folder changed last, and the time; what changes from here on makes the look an old one."""
    # So that writing it later is no change of the folder.
    with suppress(OSError):
        os.close(os.open(_path(folder), os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    return folder.stat().st_mtime_ns, time.time_ns()


def write_front(folder: Path, front: Front) -> None:
    """Keep what a look found; a disk without space keeps nothing."""
    data = json.dumps(asdict(front)).encode()
    with suppress(OSError):
        descriptor = os.open(_path(folder), os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.ftruncate(descriptor, os.pwrite(descriptor, data, 0))
        finally:
            os.close(descriptor)


def read_front(folder: Path) -> Front | None:
    """What the last look found, as long as the folder has not changed since; None: nobody can tell without a look."""
    try:
        descriptor = os.open(_path(folder), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if os.fstat(descriptor).st_uid != os.getuid():
                return None
            raw = parsed_json(os.read(descriptor, _LIMIT_BYTES))
        finally:
            os.close(descriptor)
        names = {name: tuple(map(str, raw[name])) for name in ("held", "next", "first")}
        front = Front(int(raw["changed"]), int(raw["looked"]), **names)
        return front if front.settled and folder.stat().st_mtime_ns == front.changed else None
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _path(folder: Path) -> Path:
    return folder / f"front-{os.getuid()}.json"
