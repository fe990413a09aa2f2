"""Changes of the queue by people: place and priority of a run that waits."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workbench.base.errors import RunError
from workbench.launchers.queue.line import in_line, owner_of, training
from workbench.launchers.queue.outlook import Place, outlook
from workbench.launchers.queue.queue_folder import QUEUE_VARIABLE, Queue, queue_here
from workbench.launchers.queue.settings import LARGEST_PRIORITY, QueueSettings, write_settings
from workbench.launchers.queue.ticket import Ticket
from workbench.store.find import called_so

Change = Callable[[Ticket, list[Ticket]], list[Ticket]]


@dataclass(frozen=True)
class Moved:
    """The outcome of a move.

    Attributes:
        run: its id. place: where it stands now; None: its turn has come in between.
        priority: that it has now. before: that it had.
    """

    run: str
    place: Place | None
    priority: int
    before: int

    @property
    def text(self) -> str:
        """In words."""
        changed = "" if self.priority == self.before else f"; its priority is now {self.priority}, it was {self.before}"
        return ("its turn has come" if self.place is None else self.place.text) + changed


def this_queue() -> Queue:
    """Return the queue of this machine.

    Raises:
        RunError: it is switched off.
    """
    queue = queue_here()
    if queue is None:
        raise RunError(f"this machine's queue is switched off: ${QUEUE_VARIABLE} is 'off', so every run starts at once")
    return queue


def set_limits(changes: dict[str, int | None]) -> QueueSettings:
    """Change the limits of this machine's queue (None: the default); returns those in force.

    Raises:
        RunError: no such limit, not a number that it can have, or the queue is off or cannot be changed.
    """
    queue = this_queue()
    try:
        queue.prepare()
        with queue.locked():
            return write_settings(queue.folder, changes)
    except OSError as error:
        raise RunError(f"the queue's settings in {queue.folder} cannot be changed: {error.strerror or error}") from None


def waiting_ticket(tickets: Sequence[Ticket], run: str) -> Ticket:
    """Find the ticket of a run that waits, by its id, a unique beginning of it, its name or its folder.

    Raises:
        RunError: none waits by that name (one that trains is told), or several do.
    """
    line = in_line(tickets)
    found, meaning = _meant(run, line)
    if len(found) == 1:
        return found[0]
    if not found and (begun := _meant(run, training(tickets))[0]):
        ids = [ticket.run.id for ticket in begun]
        trains = "trains" if len(ids) == 1 else "train"
        raise RunError(f"{', '.join(ids)} {trains} already and no longer waits: `workbench stop {ids[0]}` ends it")
    named = ", ".join(ticket.run.id for ticket in (found or line)[:5]) or "nothing"
    what = f"'{run}' {meaning} of {len(found)} runs that wait" if found else f"no run '{run}' waits here"
    raise RunError(f"{what}; {'of those' if found else 'what waits'}: {named}. `workbench queue` lists all")


def _meant(run: str, tickets: Sequence[Ticket]) -> tuple[list[Ticket], str]:
    """Return tickets that a user may mean by what was typed, and what that is to them."""
    path = str(Path(run).expanduser().absolute())
    found = [ticket for ticket in tickets if ticket.folder == path or (run and ticket.run.id.startswith(run))]
    if found:
        return found, "begins the ids"
    so = called_so(run, {ticket.run.id: ticket.called for ticket in tickets})
    return [ticket for ticket in tickets if ticket.run.id in so], "is the name"


def checked_priority(priority: Any) -> int:
    """Return a legal priority as a whole number.

    Raises:
        RunError: it is no whole number, or too large.
    """
    if isinstance(priority, bool) or not hasattr(priority, "__index__"):
        raise RunError(f"priority: {priority!r:.60} is not a whole number; 0 is usual, higher goes first")
    number = operator.index(priority)
    if abs(number) > LARGEST_PRIORITY:
        # Python refuses to write a number of thousands of digits.
        told = f" {number}" if abs(number) < 10**12 else ""
        raise RunError(f"priority{told} is beyond -{LARGEST_PRIORITY}..{LARGEST_PRIORITY}; 0 is usual")
    return number


def set_priority(run: str, priority: int) -> Moved:
    """Give a run that waits another priority; 0 is usual, higher ones go first.

    Raises:
        RunError: no such run waits, it is somebody else's, or that is no priority.
    """
    number = checked_priority(priority)
    return _changed(run, lambda ticket, line: [replace(ticket, priority=number)])


def move(run: str, place: int) -> Moved:
    """Move a run among those of its owner that wait; it takes the priority of the one whose place it takes.

    Args:
        place: 1 for the owner's next.

    Raises:
        RunError: no such run waits, or it is somebody else's.
    """
    if place < 1:
        raise RunError(f"place {place} is before the first; 1 makes a run its owner's next")

    def moved(ticket: Ticket, line: list[Ticket]) -> list[Ticket]:
        own = [each for each in line if owner_of(each) == owner_of(ticket)]
        places = sorted((each.round, each.number) for each in own)
        priority = own[min(place, len(own)) - 1].priority
        own.remove(ticket)
        own.insert(place - 1, replace(ticket, priority=priority))
        return [replace(each, round=round_, number=n) for each, (round_, n) in zip(own, places, strict=True)]

    return _changed(run, moved)


def _changed(run: str, change: Change) -> Moved:
    queue = this_queue()
    ticket: Ticket | None = None
    try:
        queue.prepare()
        with queue.locked():
            tickets = queue.tickets()
            ticket = waiting_ticket(tickets, run)
            changed = change(ticket, in_line(tickets))
            for each in changed:
                queue.change(each)
    except OSError as error:
        if ticket is not None and isinstance(error, PermissionError):
            raise RunError(f"run '{ticket.run.id}' is {ticket.owner}'s; only they can change its place") from None
        raise RunError(f"the queue in {queue.folder} cannot be changed: {error.strerror or error}") from None
    (priority,) = (each.priority for each in changed if each.folder == ticket.folder)
    return Moved(ticket.run.id, outlook(queue).places.get(ticket.folder), priority, ticket.priority)
