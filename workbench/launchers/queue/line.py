"""In what order tickets have their turn, and whose it is now: pure functions of what a look at the queue has found.

Higher priorities first; within one priority the owners take turns, and each owner's runs keep their order: a ticket
enters in the round that runs now, or in the one after its owner's last (start-time fair queueing: Goyal, Vin and Cheng
1996), so that its place needs no memory of who trained before. Nobody is overtaken on the same cores or GPU: a run that
needs more than is free holds up those behind it, or it would wait for ever. A run that asks for more than there is
takes all of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from workbench.launchers.queue.settings import QueueSettings
from workbench.launchers.queue.ticket import Ticket

Owner = tuple[int, str]


def owner_of(ticket: Ticket) -> Owner:
    """Whose turn it counts as: the file's user, since anybody may write any name."""
    return ticket.uid, ticket.owner


def training(tickets: Iterable[Ticket]) -> list[Ticket]:
    """Return the tickets whose turn it is, in the order in which they entered."""
    return sorted((ticket for ticket in tickets if ticket.running and ticket.alive), key=lambda each: each.number)


def in_line(tickets: Sequence[Ticket]) -> list[Ticket]:
    """Return the tickets that wait, next first."""
    waiting = [ticket for ticket in tickets if not ticket.running and ticket.alive]
    return sorted(waiting, key=lambda each: (-each.priority, each.round, each.number))


def entered(ticket: Ticket, tickets: Sequence[Ticket]) -> Ticket:
    """Return a new ticket with its number and its round."""
    own = [each.round for each in tickets if owner_of(each) == owner_of(ticket)]
    running = [each.round for each in training(tickets)]
    now = max(running) if running else min((each.round for each in in_line(tickets)), default=0)
    number = 1 + max((each.number for each in tickets), default=0)
    return replace(ticket, number=number, round=max([now, *(1 + each for each in own)]))


def cores_for(ticket: Ticket, settings: QueueSettings) -> int:
    """Return cores that there are for a ticket, by the setting or else by the process that entered it.

    Not by the process that looks: one that is bound to a core would let runs of others wait.
    """
    return settings.cores or ticket.cores or settings.capacity


def next_of(
    now: Sequence[Ticket],
    line: Sequence[Ticket],
    settings: QueueSettings,
    holds: Callable[[Ticket], bool] = lambda ticket: ticket.alive,
) -> list[tuple[Ticket, str]]:
    """Return the tickets that may train now, each with its GPU (empty on the CPU).

    Args:
        now: what trains. line: those that wait, next first.
        holds: whether a process still holds a ticket of the line; asked only of those on which the answer depends.
    """
    threads = [ticket.threads for ticket in now if not ticket.gpus]
    on_gpu = Counter(ticket.gpu for ticket in now if ticket.gpus)
    by_owner = Counter(owner_of(ticket) for ticket in now)
    full = False
    found: list[tuple[Ticket, str]] = []
    for ticket in line:
        # Waits for its owner's own runs, and holds up nobody else.
        if settings.running_per_owner is not None and by_owner[owner_of(ticket)] >= settings.running_per_owner:
            continue
        if ticket.gpus:
            free = [gpu for gpu in ticket.gpus if on_gpu[gpu] < settings.runs_per_gpu]
            if not free or not holds(ticket):
                continue
            on_gpu[free[0]] += 1
        else:
            if full or not holds(ticket):
                continue
            cores = cores_for(ticket, settings)
            full = sum(min(each, cores) for each in (*threads, ticket.threads)) > cores
            if full:
                continue
            threads.append(ticket.threads)
        by_owner[owner_of(ticket)] += 1
        found.append((ticket, free[0] if ticket.gpus else ""))
    return found
