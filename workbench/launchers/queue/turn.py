"""A run's turn: waiting for it, taking it, giving it back. Held by a process, through a descriptor of its ticket."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Set
from contextlib import suppress
from dataclasses import replace

from workbench.base.errors import RunError
from workbench.launchers.queue.front import FIRST, Front, begin_look, read_front, write_front
from workbench.launchers.queue.line import entered, in_line, next_of, owner_of, training
from workbench.launchers.queue.queue_folder import LIMIT_BYTES, Queue, queue_here
from workbench.launchers.queue.ticket import Ticket, decoded, present_owner, ticket_of
from workbench.store.folder import RunFolder

TICKET_VARIABLE = "WORKBENCH_TICKET_DESCRIPTOR"
KEEP_SECONDS = 2.0
PATIENCE_SECONDS = 10.0
"""For who does not take its turn; then the next one does."""


class Turn:
    """A run's place in the queue, or its leave to train without one.

    Args:
        queue: None: the machine has none.
        ticket: as it was last read or written. descriptor: of its file; None without a queue.

    Attributes:
        problem: why the run does without the queue, or what was found wrong in it; empty as a rule.
        position: at the last look; 1 is next, and those far behind are not told apart.
    """

    def __init__(self, queue: Queue | None, ticket: Ticket, descriptor: int | None, problem: str = "") -> None:
        self.ticket, self.problem = ticket, problem
        self._queue, self._descriptor = queue, descriptor
        self.position = 1
        self._front: Front | None = None
        self._could: dict[str, float] = {}
        self._kept_at = self._decides_at = 0.0

    @property
    def running(self) -> bool:
        """Whether it may train."""
        return self._descriptor is None or self.ticket.running

    @property
    def descriptors(self) -> dict[str, int]:
        """What a process must inherit to hold the turn, by the variable that tells it the number."""
        return {} if self._descriptor is None else {TICKET_VARIABLE: self._descriptor}

    @property
    def gpu(self) -> str:
        """The GPU to train on, where there are several; empty otherwise."""
        return self.ticket.gpu if len(self.ticket.gpus) > 1 else ""

    def claim(self) -> bool:
        """Train now, if it is this run's turn; cheap to ask again and again."""
        if self.running or self._queue is None:
            return True
        try:
            if self._nothing_new(self._queue):
                return False
            # Somebody may have emptied the cache.
            self._queue.prepare()
            with self._queue.locked():
                if not self._told(self._queue):
                    self._look(self._queue)
        except OSError as error:
            self._do_without(error)
        return self.running

    def keep(self) -> None:
        """Write the ticket anew where somebody deleted or damaged it; some system calls, now and then."""
        if self._queue is None or self._descriptor is None or time.monotonic() - self._kept_at < KEEP_SECONDS:
            return
        self._kept_at = time.monotonic()
        # Without space for it now, it is tried again.
        with suppress(OSError):
            whole = self._in_place(self._queue) and decoded(os.pread(self._descriptor, LIMIT_BYTES, 0)) is not None
            if not whole:
                self._queue.prepare()
                with self._queue.locked():
                    self._write_anew(self._queue)

    def hand_over(self) -> None:
        """Let go without giving the turn back: another process has inherited it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def leave(self) -> None:
        """Give the turn back, or the place in the queue."""
        if self._queue is None or self._descriptor is None:
            return
        # Where it cannot be removed it is dead as soon as the descriptor is closed.
        with suppress(OSError):
            if self._in_place(self._queue):
                (self._queue.folder / self.ticket.file).unlink(missing_ok=True)
        self.hand_over()

    def _nothing_new(self, queue: Queue) -> bool:
        front = self._front
        # While there is room for somebody else, who is about to take it, the next look is not spared.
        if front is None or front.next or not front.settled:
            return False
        # Who comes or goes changes the folder; who is killed lets go of a lock.
        with suppress(FileNotFoundError):
            return queue.folder.stat().st_mtime_ns == front.changed and all(map(queue.alive, front.held))
        return False

    def _told(self, queue: Queue) -> bool:
        """Whether what somebody's last look found says that this run's turn has not come."""
        front, mine = read_front(queue.folder), queue.ticket(self.ticket.file)
        if front is None or mine is None or mine.running or not self._in_place(queue) or mine.file in front.next:
            return False
        if not all(map(queue.alive, front.held)):
            return False
        self.ticket = mine
        self._see(front)
        return not self._silent()

    def _look(self, queue: Queue) -> None:
        """Read what is new, take the turn if it has come, and tell the others that wait."""
        mine = queue.ticket(self.ticket.file) if self._in_place(queue) else None
        if mine is None:
            # Deleted or damaged, and those of what trains perhaps as well: they come back within that time.
            self._write_anew(queue)
            self._decides_at = time.monotonic() + 2 * KEEP_SECONDS
            return
        self.ticket = mine
        if mine.running or time.monotonic() < self._decides_at:
            return
        changed, looked = begin_look(queue.folder)
        line = _Line(queue, mine, queue.known())
        could = line.could()
        held = tuple(sorted({*_files(line.now), *line.asked}))
        front = Front(changed, looked, held, _files(each for each, _ in could), _files(line.waiting[:FIRST]))
        self._see(front)
        silent = self._silent()
        self.ticket = line.started(line.could(silent) if silent else could)
        if self.ticket.running:
            queue.change(self.ticket)
        else:
            write_front(queue.folder, front)

    def _see(self, front: Front) -> None:
        self._front, self.position = front, front.position(self.ticket.file)
        others = set(front.next) - {self.ticket.file}
        self._could = {file: self._could.get(file, time.monotonic()) for file in others}

    def _silent(self) -> set[str]:
        """Those whose turn came a while ago and who have not taken it: suspended, or on a disk that hangs."""
        return {file for file, since in self._could.items() if time.monotonic() - since > PATIENCE_SECONDS}

    def _in_place(self, queue: Queue) -> bool:
        assert self._descriptor is not None
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.stat(queue.folder / self.ticket.file))
        except OSError:
            return False

    def _write_anew(self, queue: Queue) -> None:
        new = queue.create(self.ticket)
        self.hand_over()
        self._descriptor = new

    def _do_without(self, error: OSError) -> None:
        self.problem = _without(self._queue, error)
        self.hand_over()


class _Line:
    """What trains, and who waits, as one of those who wait finds it under the lock.

    Args:
        mine: its own ticket, which nobody need hold yet.

    Attributes:
        asked: files of those in line on whom :meth:`could` depends, and that a process holds.
    """

    def __init__(self, queue: Queue, mine: Ticket, tickets: Iterable[Ticket]) -> None:
        others = [each for each in tickets if each.folder != mine.folder]
        self._queue, self._mine, self._settings = queue, mine, queue.settings()
        self.now = [each for each in training(others) if queue.holds(each)]
        self.waiting = in_line([*others, mine])
        self.asked: set[str] = set()

    def could(self, without: Set[str] = frozenset()) -> list[tuple[Ticket, str]]:
        """Those whose turn has come, each with its GPU, as if those of these files were not there."""
        line = [each for each in self.waiting if each.file not in without] if without else self.waiting
        return next_of(self.now, line, self._settings, self._holds)

    def started(self, could: Iterable[tuple[Ticket, str]]) -> Ticket:
        """One's own ticket, with its turn if it is among them."""
        found = [replace(each, running=True, gpu=gpu) for each, gpu in could if each is self._mine]
        return found[0] if found else self._mine

    def at_once(self) -> Ticket:
        """One's own ticket, with its turn whatever else trains, on the GPU that the fewest have taken."""
        taken = Counter(each.gpu for each in self.now)
        return replace(self._mine, running=True, gpu=min(self._mine.gpus, key=lambda gpu: taken[gpu], default=""))

    def _holds(self, each: Ticket) -> bool:
        held = each is self._mine or self._queue.holds(each)
        self.asked |= {each.file} if held else set()
        return held


def _files(tickets: Iterable[Ticket]) -> tuple[str, ...]:
    return tuple(each.file for each in tickets)


def enter(folder: RunFolder, *, wait: bool = True, priority: int = 0) -> Turn:
    """Take a place in this machine's queue for a run, and its turn at once where there is room.

    Args:
        wait: else its turn comes now, whatever else trains.

    A queue that cannot be used keeps no run from training: it begins, and :attr:`Turn.problem` says why.
    """
    queue = queue_here()
    ticket = ticket_of(folder, priority)
    if queue is None:
        return Turn(None, ticket, None)
    try:
        queue.prepare()
        with queue.locked():
            tickets, damaged = queue.sweep()
            ticket = replace(entered(ticket, tickets), entered=time.time())
            for each in tickets:
                # It waited before, and its process is gone.
                if each.folder == ticket.folder:
                    kept = {name: getattr(each, name) for name in ("round", "number", "priority", "entered")}
                    ticket = replace(ticket, **kept)
            # Here, so that many who enter look once each.
            line = _Line(queue, ticket, tickets)
            ticket = line.started(line.could()) if wait else line.at_once()
            return Turn(queue, ticket, queue.create(ticket), _removed(damaged))
    except OSError as error:
        return Turn(None, ticket, None, _without(queue, error))


def inherited(folder: RunFolder) -> Turn | None:
    """The turn that the parent process passed on, if it is this run's."""
    # Removed, since in a grandchild the same number would stand for another file.
    text = os.environ.pop(TICKET_VARIABLE, "")
    queue = queue_here()
    if queue is None or not text.isdigit():
        return None
    ticket = queue.ticket(Ticket(str(folder.path)).file)
    turn = None if ticket is None else Turn(queue, ticket, int(text))
    # A number proves nothing.
    if turn is None or not turn._in_place(queue):
        return None
    os.set_inheritable(int(text), False)
    return turn


def check_room() -> None:
    """Refuse a further run that would wait, where its owner has as many as the queue allows.

    Raises:
        RunError: that many wait.
    """
    queue = queue_here()
    limit = None if queue is None else queue.settings().waiting_per_owner
    if queue is None or limit is None:
        return
    me = os.getuid(), present_owner()
    mine = [ticket for ticket in in_line(queue.known()) if owner_of(ticket) == me]
    if len(mine) >= limit:
        mine = [ticket for ticket in mine if queue.holds(ticket)]
    if len(mine) >= limit:
        raise RunError(
            f"{len(mine)} of your runs wait already, and the queue of this machine allows {limit}: wait, cancel some "
            "(`workbench queue cancel RUN`), or raise waiting_per_owner (`workbench queue set`)"
        )


def _removed(damaged: list[str]) -> str:
    if not damaged:
        return ""
    return (
        f"damaged tickets were removed from the queue ({', '.join(damaged)}); if a run of yours waited there without a "
        "process, `workbench queue start` queues it again"
    )


def _without(queue: Queue | None, error: OSError) -> str:
    where = "" if queue is None else f" in {queue.folder}"
    return (
        f"the queue{where} cannot be used ({error.strerror or error}), so the run does not wait: it starts beside "
        "whatever else trains here. $WORKBENCH_QUEUE names another folder"
    )
