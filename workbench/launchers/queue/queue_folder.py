"""The folder of a machine's queue: its tickets, its settings, and the lock under which anything in it changes.

``$WORKBENCH_QUEUE`` names it, and ``off`` means that runs start at once; else it is in the user's cache. Users who
share a machine share a folder: the administrator makes one that all may write to (``chmod 1777``) and sets the variable
for everybody. Without it each user has a queue, which knows nothing of the others.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from workbench.base.cache_folder import cache_folder
from workbench.base.files import locked
from workbench.launchers.queue.line import in_line
from workbench.launchers.queue.settings import QueueSettings, read_settings
from workbench.launchers.queue.ticket import RESERVED_SECONDS, SUFFIX, Ticket, decoded, encoded
from workbench.store.state import lock_held, read_state

QUEUE_VARIABLE = "WORKBENCH_QUEUE"
OFF = "off"
_LOCK = "lock"
FIRST = 10
"""In line, who are asked at every sweep whether they are still there."""
LIMIT_BYTES = 1 << 16
# On these a lock of one machine may be unknown to another, or to the file server's next start.
_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "lustre", "gpfs", "ceph", "glusterfs", "beegfs", "9p")


Stamp = tuple[int, int, int]
_KNOWN: dict[Path, dict[str, tuple[Stamp, Ticket | None, int]]] = {}
"""Tickets that this process has read of each queue, by file, with inode, time and size, and when."""


def queue_here() -> Queue | None:
    """Return the queue of this machine and user; None where it is switched off."""
    named = os.environ.get(QUEUE_VARIABLE)
    if named == OFF:
        return None
    if named:
        return Queue(Path(named).expanduser().absolute())
    folder = cache_folder().expanduser().absolute() / "queue"
    if _on_network(folder):
        # A home on a file server; the queue is this machine's alone.
        folder = Path(tempfile.gettempdir()) / f"workbench-queue-{os.getuid()}"
    return Queue(folder)


@dataclass(frozen=True)
class Queue:
    """A queue's folder; holds nothing itself."""

    folder: Path
    SETTLED_NS: ClassVar[int] = 20_000_000
    """File systems count time in ticks of up to 10 ms: what changed within the same one looks as it did before."""

    def changed(self) -> int:
        """Return when a ticket or a setting was written last, in nanoseconds.

        Raises:
            FileNotFoundError: the folder is gone.
        """
        return self.folder.stat().st_mtime_ns

    def settings(self) -> QueueSettings:
        """Return the limits in force."""
        return read_settings(self.folder)

    def prepare(self) -> None:
        """Make the folder where there is none.

        Raises:
            OSError: it cannot be made, or in the shared folder of temporary files somebody else has made it.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.folder.parent == Path(tempfile.gettempdir()) and self.folder.stat().st_uid != os.getuid():
            raise PermissionError(f"{self.folder} is somebody else's")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Only one process at a time looks and decides; milliseconds, and the kernel unlocks for whoever dies.

        Raises:
            OSError: the folder is gone or cannot be used.
        """
        path = self.folder / _LOCK
        try:
            # For reading, which is enough to lock it: of a shared queue one user has made it.
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
            # Whatever the umask grants: whoever cannot open it trains beside everybody else.
            with suppress(PermissionError):  # another user was faster
                os.fchmod(descriptor, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # by name: see `locked`
            os.close(descriptor)

    def tickets(self) -> list[Ticket]:
        """Return all tickets that can be read, the dead among them; none where there is no folder."""
        return [ticket if self.holds(ticket) else replace(ticket, alive=False) for ticket in self.known()]

    def known(self) -> list[Ticket]:
        """Return :meth:`tickets`, reading only those that are new or have changed since this process read them.

        One that has died since is still alive here: :meth:`holds` asks.
        """
        return [ticket for ticket in self._known().values() if ticket is not None]

    def ticket(self, file: str) -> Ticket | None:
        """Return one ticket as it is now; None where it is damaged or gone."""
        return self._read(self.folder / file)

    def holds(self, ticket: Ticket) -> bool:
        """Return True if a process still holds a ticket. A dead one stays dead: who comes back writes another file."""
        return ticket.alive and self.alive(ticket.file)

    def alive(self, file: str) -> bool:
        """Return :meth:`holds` by the name of a ticket's file."""
        with suppress(OSError):
            if _held(self.folder / file):
                return True
        ticket = self.ticket(file)
        return ticket is not None and ticket.alive

    def sweep(self) -> tuple[list[Ticket], list[str]]:
        """Remove what is dead and of no more use, under the lock.

        Kept are tickets of runs that wait without a process: they are started again (:mod:`.orphans`).

        Returns:
            The tickets that are left, and the names of damaged ones that are not.
        """
        tickets, damaged = [], []
        known = self._known()
        # Of those that wait, who was killed is found at the latest when its turn comes near.
        near = {ticket.file for ticket in in_line(list(filter(None, known.values())))[:FIRST]}
        for name, ticket in known.items():
            if ticket is not None and (ticket.running or name in near) and not self.holds(ticket):
                ticket = replace(ticket, alive=False)
            # Somebody else's, in a folder that all may write to, stays there: dead, it counts for nothing.
            with suppress(OSError):
                if ticket is not None and (ticket.alive or read_state(ticket.run).status == "queued"):
                    tickets.append(ticket)
                elif ticket is not None or not _held(self.folder / name):
                    (self.folder / name).unlink()
                    damaged += [name] if ticket is None else []
        return tickets, damaged

    def create(self, ticket: Ticket) -> int:
        """Write a ticket, under the lock; returns the descriptor that keeps it alive. It replaces one of the same run.

        Raises:
            OSError: the disk is full, or the folder cannot be written to; nothing is left behind.
        """
        aside = self.folder / f".{secrets.token_hex(8)}"
        descriptor = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            # Before anybody can see it, so that nobody ever finds it dead.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # As of the lock above: a GPU whose ticket others cannot read looks free to them.
            os.fchmod(descriptor, 0o644)
            data = encoded(ticket)
            if os.write(descriptor, data) != len(data):
                raise OSError(28, os.strerror(28))
            aside.rename(self.folder / ticket.file)
        except BaseException:
            os.close(descriptor)
            with suppress(OSError):
                aside.unlink()
            raise
        return descriptor

    def change(self, ticket: Ticket) -> None:
        """Write a ticket that is there anew, in place, so that its lock stays; under the lock. Others look then.

        Raises:
            OSError: it is gone, or somebody else's.
        """
        descriptor = os.open(self.folder / ticket.file, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.ftruncate(descriptor, os.pwrite(descriptor, encoded(ticket), 0))
        finally:
            os.close(descriptor)
        with suppress(OSError):
            os.utime(self.folder)

    def _known(self) -> dict[str, Ticket | None]:
        """By the names of their files; None: damaged."""
        before, found = _KNOWN.get(self.folder, {}), {}
        with suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                if not entry.name.endswith(SUFFIX):
                    continue
                with suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    stamp = status.st_ino, status.st_mtime_ns, status.st_size
                    known = before.get(entry.name)
                    # What has changed a moment ago may change again within the same tick of the clock.
                    if known is None or known[0] != stamp or known[2] < stamp[1] + self.SETTLED_NS:
                        known = stamp, self._read(Path(entry.path)), time.time_ns()
                    found[entry.name] = known
        _KNOWN[self.folder] = found
        return {name: ticket for name, (_, ticket, _) in found.items()}

    def _read(self, path: Path) -> Ticket | None:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            ticket = decoded(os.read(descriptor, LIMIT_BYTES).rstrip())
            uid, held = os.fstat(descriptor).st_uid, locked(descriptor)
        except OSError:
            return None
        finally:
            os.close(descriptor)
        # A file of another name would make one run hold two places.
        if ticket is None or ticket.file != path.name:
            return None
        # A supervisor that was killed takes its trainer with it; where the system cannot, the trainer keeps its place.
        # One that was just launched has a place before its supervisor is there to hold it.
        held = held or 0 < ticket.reserved - time.time() <= RESERVED_SECONDS
        return replace(ticket, uid=uid, alive=held or (ticket.running and lock_held(ticket.run)))


def _held(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return locked(descriptor)
    finally:
        os.close(descriptor)


def _on_network(folder: Path) -> bool:
    """Return True if a folder lies, or would lie, on a file system of another machine."""
    try:
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    except OSError:
        return False
    path = os.path.realpath(folder)
    best = max((m for m in mounts if len(m) > 2 and _within(path, m[1])), key=lambda m: len(m[1]), default=None)
    return best is not None and best[2] in _NETWORK


def _within(path: str, mount: str) -> bool:
    return path == mount or path.startswith(mount.rstrip("/") + "/")
