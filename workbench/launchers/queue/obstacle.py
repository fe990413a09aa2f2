"""What a run that waits waits for, in words: cores, a GPU, a limit, or those before it."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.base.text import many
from workbench.launchers.queue.line import cores_for, owner_of
from workbench.launchers.queue.outlook import Outlook
from workbench.launchers.queue.ticket import Ticket


def obstacle(ticket: Ticket, found: Outlook) -> str:
    """What keeps a run of the queue from training now, and by whose count of cores; empty where only others do.

    Args:
        found: the look at the queue that has the run among those that wait.
    """
    busy, limit = [*found.training, *found.paused, *found.ending], found.settings.running_per_owner
    own = sum(owner_of(each) == owner_of(ticket) for each in busy)
    if limit is not None and own >= limit:
        return f"{many(own, 'run')} of {ticket.owner} train, as many as running_per_owner allows"
    if ticket.gpus:
        held = [each for each in busy if each.gpu in ticket.gpus]
        full = len(held) >= found.settings.runs_per_gpu * len(ticket.gpus)
        return f"all of its {many(len(ticket.gpus), 'GPU')} are taken" if full else ""
    return _cores(ticket, busy, found)


def _cores(ticket: Ticket, busy: Sequence[Ticket], found: Outlook) -> str:
    cores = cores_for(ticket, found.settings)
    needed, taken = min(ticket.threads, cores), sum(min(each.threads, cores) for each in busy if not each.gpus)
    if needed + taken <= cores:
        return ""
    said = f"it needs {many(needed, 'core')}, and {taken} of {cores} are taken"
    if cores == found.cores:
        return said
    return (
        f"{said}: its process may use no more than {many(cores, 'core')} (as taskset binds one), others here "
        f"{found.cores}; `workbench queue set cores={found.cores}` counts the same for all"
    )
