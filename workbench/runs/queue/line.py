"""In what order tickets have their turn, and whose it is now: pure functions of what a look at the queue has found.

Higher priorities first; within one priority the owners take turns, and each owner's runs keep their order. Nobody is
overtaken on the same cores or GPU: a run that needs more than is free holds up those behind it, or it would wait for
ever. A run that asks for more than there is takes all of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from workbench.runs.queue.settings import QueueSettings
from workbench.runs.queue.ticket import Ticket

Owner = tuple[int, str]


def owner_of(ticket: Ticket) -> Owner:
    """Whose turn it counts as: the file's user, since anybody may write any name."""
    return ticket.uid, ticket.owner


def training(tickets: Iterable[Ticket]) -> list[Ticket]:
    """Those whose turn it is."""
    return [ticket for ticket in tickets if ticket.running and ticket.alive]


def in_line(tickets: Sequence[Ticket]) -> list[Ticket]:
    """Those that wait, next first."""
    # The k-th run of an owner comes after everybody's (k-1)-th; those that train count, so that turns alternate also
    # where there is one place.
    turns = Counter(owner_of(ticket) for ticket in training(tickets))
    waiting = [ticket for ticket in tickets if not ticket.running and ticket.alive]
    order = []
    for ticket in sorted(waiting, key=lambda each: (-each.priority, each.number)):
        order.append((-ticket.priority, turns[owner_of(ticket)], ticket.number, ticket))
        turns[owner_of(ticket)] += 1
    return [ticket for *_, ticket in sorted(order, key=lambda each: each[:3])]


def startable(tickets: Sequence[Ticket], settings: QueueSettings) -> list[tuple[Ticket, str]]:
    """Those that wait and may train now, each with the GPU that it gets (empty on the CPU)."""
    now = training(tickets)
    cores = settings.capacity
    used = sum(min(ticket.threads, cores) for ticket in now if not ticket.gpus)
    on_gpu = Counter(ticket.gpu for ticket in now if ticket.gpus)
    by_owner = Counter(owner_of(ticket) for ticket in now)
    taken: set[str] = set()
    full = False
    found: list[tuple[Ticket, str]] = []
    for ticket in in_line(tickets):
        # Waits for its owner's own runs, and holds up nobody else.
        if settings.running_per_owner is not None and by_owner[owner_of(ticket)] >= settings.running_per_owner:
            continue
        if ticket.gpus:
            free = [gpu for gpu in ticket.gpus if gpu not in taken and on_gpu[gpu] < settings.runs_per_gpu]
            if not free:
                taken |= set(ticket.gpus)
                continue
            on_gpu[free[0]] += 1
        else:
            needed = min(ticket.threads, cores)
            full = full or used + needed > cores
            if full:
                continue
            used += needed
        by_owner[owner_of(ticket)] += 1
        found.append((ticket, free[0] if ticket.gpus else ""))
    return found
