"""A run's turn: reserved at its launch, then held by its supervisor, which waits for it, keeps it and gives it back."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Set
from contextlib import suppress
from dataclasses import replace

from workbench.base.errors import RunError
from workbench.launchers.launched import Launched
from workbench.launchers.queue.line import entered, in_line, next_of, owner_of, training
from workbench.launchers.queue.queue_folder import LIMIT_BYTES, Queue, queue_here
from workbench.launchers.queue.ticket import RESERVED_SECONDS, Ticket, decoded, present_owner, ticket_of
from workbench.store import control
from workbench.store.folder import RunFolder
from workbench.store.state import write_state

KEEP_SECONDS = 2.0
PATIENCE_SECONDS = 10.0
"""For who does not take its turn; then the next one does."""
LOOK_SECONDS = 0.2
WAITING = "waiting for its turn on this machine"
STOPPED = "taken out of the queue before it began"
ABANDONED = "the process that launched this run has ended"
QUEUED_BY = ("local", "inline")
"""Launchers whose runs take turns in the queue of this machine; that of others is elsewhere."""


class Turn:
    """A run's place in the queue, or its leave to train without one.

    Args:
        queue: None: the machine has none.
        ticket: as it was last read or written. descriptor: of its file; None without a queue.

    Attributes:
        problem: why the run does without the queue, or what was found wrong in it; empty as a rule.
        position: at the last look; 1 is next.
    """

    def __init__(self, queue: Queue | None, ticket: Ticket, descriptor: int | None, problem: str = "") -> None:
        self.ticket, self.problem = ticket, problem
        self._queue, self._descriptor = queue, descriptor
        self.position = 1
        # When the folder had changed last, and the tickets on whose holders the answer depended: None before a look,
        # and while it is somebody else's turn to begin.
        self._seen: tuple[int, Set[str]] | None = None
        self._could: dict[str, float] = {}
        self._kept_at = self._decides_at = 0.0

    @property
    def running(self) -> bool:
        """True when it may train."""
        return self._descriptor is None or self.ticket.running

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

    def drop(self) -> None:
        """Let go of the ticket without giving the turn back, for another process to hold it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def pass_on(self) -> None:
        """Drop the ticket for a supervisor that is about to take its place.

        Raises:
            OSError: the ticket cannot be written; it is held still.
        """
        if self._queue is not None and self._descriptor is not None:
            with self._queue.locked():
                self._queue.change(replace(self.ticket, reserved=time.time() + RESERVED_SECONDS))
            self.drop()

    def leave(self) -> None:
        """Give the turn back, or the place in the queue."""
        if self._queue is None or self._descriptor is None:
            return
        # Where it cannot be removed it is dead as soon as the descriptor is closed.
        with suppress(OSError):
            if self._in_place(self._queue):
                (self._queue.folder / self.ticket.file).unlink(missing_ok=True)
        self.drop()

    def _nothing_new(self, queue: Queue) -> bool:
        if self._seen is None:
            return False
        # Who comes or goes changes the folder; who is killed lets go of a lock.
        with suppress(FileNotFoundError):
            return queue.changed() == self._seen[0] and all(map(queue.alive, self._seen[1]))
        return False

    def _look(self, queue: Queue) -> None:
        """Read what is new, and take the turn if it has come."""
        mine = queue.ticket(self.ticket.file) if self._in_place(queue) else None
        if mine is None:
            # Deleted or damaged, and those of what trains perhaps as well: they come back within that time.
            self._write_anew(queue)
            self._decides_at = time.monotonic() + 2 * KEEP_SECONDS
            return
        self.ticket = mine
        if mine.running or time.monotonic() < self._decides_at:
            return
        changed = queue.changed()
        line = _Line(queue, mine, queue.known())
        could = line.could()
        others = {each.file for each, _ in could if each is not mine}
        self._could = {file: self._could.get(file, time.monotonic()) for file in others}
        self.position = 1 + line.waiting.index(mine)
        # Re-read: another run was admitted but has not started. File systems count time in ticks, too.
        settled = not others and time.time_ns() > changed + queue.SETTLED_NS
        self._seen = (changed, {each.file for each in line.now} | line.asked) if settled else None
        # Suspended, or on a disk that hangs.
        silent = {file for file, since in self._could.items() if time.monotonic() - since > PATIENCE_SECONDS}
        self.ticket = line.started(line.could(silent) if silent else could)
        if self.ticket.running:
            queue.change(self.ticket)

    def _in_place(self, queue: Queue) -> bool:
        assert self._descriptor is not None
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.stat(queue.folder / self.ticket.file))
        except OSError:
            return False

    def _write_anew(self, queue: Queue) -> None:
        new = queue.create(self.ticket)
        self.drop()
        self._descriptor = new

    def _do_without(self, error: OSError) -> None:
        self.problem = _without(self._queue, error)
        self.drop()


class _Line:
    """The tickets that train and wait, as one of those who wait finds them under the lock.

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
        """Return those whose turn has come, each with its GPU, as if those of these files were not there."""
        line = [each for each in self.waiting if each.file not in without] if without else self.waiting
        return next_of(self.now, line, self._settings, self._holds)

    def started(self, could: Iterable[tuple[Ticket, str]]) -> Ticket:
        """Return one's own ticket, with its turn if it is among them."""
        found = [replace(each, running=True, gpu=gpu) for each, gpu in could if each is self._mine]
        return found[0] if found else self._mine

    def at_once(self) -> Ticket:
        """Return one's own ticket, with its turn whatever else trains, on the GPU that the fewest have taken."""
        taken = Counter(each.gpu for each in self.now)
        return replace(self._mine, running=True, gpu=min(self._mine.gpus, key=lambda gpu: taken[gpu], default=""))

    def _holds(self, each: Ticket) -> bool:
        held = each is self._mine or self._queue.holds(each)
        self.asked |= {each.file} if held else set()
        return held


def enter(folder: RunFolder, *, wait: bool = True, priority: int = 0, reserved: float = 0.0) -> Turn:
    """Take a place in this machine's queue for a run, and its turn at once where there is room.

    A run that has a place already keeps it, and its turn where that was reserved.

    Args:
        wait: else its turn comes now, whatever else trains.
        reserved: Unix time until which the place counts as taken although nobody holds it.

    A queue that cannot be used keeps no run from training: it begins, and :attr:`Turn.problem` says why.
    """
    queue = queue_here()
    ticket = replace(ticket_of(folder, priority), reserved=reserved)
    if queue is None:
        return Turn(None, ticket, None)
    try:
        queue.prepare()
        with queue.locked():
            tickets, damaged = queue.sweep()
            ticket, going = replace(entered(ticket, tickets), entered=time.time()), False
            for each in tickets:
                if each.folder == ticket.folder:
                    kept = {name: getattr(each, name) for name in ("round", "number", "priority", "entered")}
                    ticket, going = replace(ticket, **kept), each.running and each.alive
                    gpu = each.gpu
            # Here, so that many who enter look once each.
            line = _Line(queue, ticket, tickets)
            if going:
                ticket = replace(ticket, running=True, gpu=gpu)
            else:
                ticket = line.started(line.could()) if wait else line.at_once()
            return Turn(queue, ticket, queue.create(ticket), _removed(damaged))
    except OSError as error:
        return Turn(None, ticket, None, _without(queue, error))


def reserve(folder: RunFolder, *, wait: bool, priority: int) -> tuple[Ticket, str]:
    """Take a place for a run whose supervisor is about to start; returns the ticket, and a problem of the queue."""
    turn = enter(folder, wait=wait, priority=priority, reserved=time.time() + RESERVED_SECONDS)
    ticket = replace(turn.ticket, running=turn.running)
    turn.drop()
    return ticket, turn.problem


def turn_of(folder: RunFolder) -> Turn:
    """Take the place of a run as its launcher reserved it; runs of launchers elsewhere need none."""
    launched = Launched.read(folder)
    if launched.on not in QUEUED_BY:
        return Turn(None, ticket_of(folder), None)
    priority = launched.knobs.get("priority", 0)
    wait = bool(launched.knobs.get("wait", True))
    return enter(folder, wait=wait, priority=priority if isinstance(priority, int) else 0)


def give_up(ticket: Ticket) -> None:
    """Remove the ticket of a run that nobody will train."""
    if (queue := queue_here()) is not None:
        with suppress(OSError):
            (queue.folder / ticket.file).unlink(missing_ok=True)


def mark_waiting(folder: RunFolder, ticket: Ticket) -> None:
    """Have the state of a run say that it waits, where it does.

    Raises:
        OSError: it cannot be written.
    """
    if not ticket.running:
        write_state(folder, status="queued", message=WAITING)


def wait_for_turn(folder: RunFolder, lock: int, turn: Turn, abandoned: Callable[[], bool]) -> str:
    """Wait until the run may train; returns nothing then, else why it will not.

    That is :data:`STOPPED`, and by whom, or :data:`ABANDONED`.

    Args:
        lock: descriptor of the run's lock.
        abandoned: returns True once the process that the run is tied to has ended.
    """
    if turn.claim():
        return ""
    while not turn.claim():
        # Deleted or moved away with its folder: nothing of it is to come back.
        if os.fstat(lock).st_nlink == 0 or not folder.lock.exists():
            return STOPPED
        if abandoned():
            return ABANDONED
        if why := obeyed_stop(folder):
            return why
        # Whoever comes later looks less often: a hundred that wait must not take cores from the one that trains.
        time.sleep(LOOK_SECONDS * min(turn.position, 10))
    with suppress(OSError):
        write_state(folder, status="starting", message="starting")
    return ""


def obeyed_stop(folder: RunFolder) -> str:
    """Answer a stop; returns why the run ends then, else nothing. All else that was asked waits for the trainer."""
    for request in control.pending(folder):
        if request.verb == "stop":
            refused = control.refusal(folder, request)
            with suppress(OSError):
                control.answer(folder, request.id, not refused, refused or STOPPED)
            if not refused:
                return f"{STOPPED}, by {request.by or 'somebody'}"
    return ""


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
