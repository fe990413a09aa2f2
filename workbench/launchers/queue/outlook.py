"""One look at the queue of this machine: what trains, what waits and for what, and when a turn is expected.

The remaining seconds of a run come from how far it has got, from a budget in seconds, or from the forecast that
somebody had made. Where none of them tells, the start is unknown, and is said to be.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workbench.base.json_lines import number
from workbench.base.text import many
from workbench.launchers.queue.line import cores_for, in_line, next_of, owner_of, training
from workbench.launchers.queue.queue_folder import Queue, queue_here
from workbench.launchers.queue.settings import QueueSettings
from workbench.launchers.queue.ticket import Ticket
from workbench.store.folder import RunFolder, read_object
from workbench.store.state import ENDED_WELL, PREPARING, RunState, launcher_says, lock_held, read_state

LOOK_SECONDS = 1.0
"""A look at the queue serves whoever asks within so long."""
# A share of a run that tells how long the whole takes; the first steps compile and warm caches.
_TELLING, _TELLING_SECONDS = 0.01, 2.0
_UNKNOWN = "no one can say yet how long the runs before it take"


@dataclass(frozen=True)
class Place:
    """A run's place in the queue.

    Attributes:
        position: 1 for the next one.
        seconds: until its turn is expected; None: unknown.
        paused: name of a run that is paused and keeps its turn, which may be why it is unknown; empty without one.
        preparing: name of one whose turn it is and that still prepares, which may be why as well.
    """

    position: int
    seconds: float | None
    paused: str = ""
    preparing: str = ""

    @property
    def expected_seconds(self) -> int | None:
        """:attr:`seconds` rounded, so that a table that sends what has changed is quiet for most looks.

        Never 0: it waits, and what should have ended by now goes on.
        """
        if self.seconds is None:
            return None
        step = 5 if self.seconds < 60 else 60
        return max(step * round(self.seconds / step), 5)

    @property
    def text(self) -> str:
        """In words, without the word "queued"."""
        if self.seconds is not None:
            return f"position {self.position}, expected to start {about(self.seconds)}"
        why = _UNKNOWN
        if self.paused:
            why = f"{self.paused} is paused and keeps its turn until it is resumed or stopped"
        elif self.preparing:
            why = f"{self.preparing} still prepares, and no one can say how long that takes"
        return f"position {self.position}, start unknown: {why}"


@dataclass(frozen=True)
class Outlook:
    """One look at a queue.

    Attributes:
        training: tickets of what trains now. waiting: of what waits, next first.
        paused: of what stands still, and keeps its cores or GPU. ending: of what is done, and about to give them back.
        places: of those that wait, by run folder.
        without_process: tickets of runs that wait and that no process holds; they are started again, or cancelled.
        settings: limits in force.
    """

    training: list[Ticket]
    waiting: list[Ticket]
    places: Mapping[str, Place]
    without_process: list[Ticket]
    settings: QueueSettings
    paused: Sequence[Ticket] = ()
    ending: Sequence[Ticket] = ()

    @property
    def cores(self) -> int:
        """Return the cores that trainings may take: as set, else the most that any process of the queue may use."""
        known = (*self.training, *self.waiting, *self.paused, *self.ending)
        return self.settings.cores or max(self.settings.capacity, *(ticket.cores for ticket in known), 1)

    @property
    def threads(self) -> int:
        """Return the cores that active runs take."""
        return cores_of(self.training)


def cores_of(tickets: Iterable[Ticket]) -> int:
    """Return the cores that runs take together; those on a GPU take none."""
    return sum(ticket.threads for ticket in tickets if not ticket.gpus)


def outlook(queue: Queue | None = None) -> Outlook:
    """Look at the queue of this machine now; empty where there is none."""
    queue = queue or queue_here()
    if queue is None:
        return Outlook([], [], {}, [], QueueSettings())
    tickets, settings = queue.tickets(), queue.settings()
    seconds = expected_starts(tickets, settings, remaining_seconds)
    waiting = in_line(tickets)
    trains, paused, done = _by_status(tickets)
    prepare = [ticket for ticket in trains if _prepares(read_state(ticket.run))]
    names = [found[0].called if found else "" for found in (paused, prepare)]
    places = {ticket.folder: Place(n, seconds[ticket.folder], *names) for n, ticket in enumerate(waiting, 1)}
    dead = [each for each in tickets if not each.alive and read_state(each.run).status == "queued"]
    return Outlook(trains, waiting, places, dead, settings, paused, done)


def training_now() -> list[Ticket]:
    """Return the runs of this package that train on this machine now, each with its ``threads``.

    For the words beside a forecast, which does not count them: a run that is paused keeps its turn and trains not.
    """
    queue = queue_here()
    return [] if queue is None else _by_status(queue.tickets())[0]


def _by_status(tickets: Sequence[Ticket]) -> tuple[list[Ticket], list[Ticket], list[Ticket]]:
    """Return those whose turn it is: what trains, what is paused, and what is done and whose process is ending."""
    found: tuple[list[Ticket], list[Ticket], list[Ticket]] = ([], [], [])
    for ticket in training(tickets):
        status = read_state(ticket.run).status
        # A folder that is gone reads as lost; its ticket says that a process of it is there.
        found[1 if status == "paused" else 2 if status in (*ENDED_WELL, "failed") else 0].append(ticket)
    return found


def place_of(folder: RunFolder) -> Place | None:
    """Return the place of a run in this machine's queue, at most :data:`LOOK_SECONDS` old; None: it does not wait."""
    return _LATEST.outlook().places.get(str(folder.path))


def known_here() -> set[str]:
    """Return the folders of runs that train, stand still or wait on this machine, at most :data:`LOOK_SECONDS` ago."""
    found = _LATEST.outlook()
    return {ticket.folder for ticket in (*found.training, *found.paused, *found.ending, *found.waiting)}


def notice(folder: RunFolder, running: bool, problem: str = "") -> str:
    """Return the line for whoever launches a run; empty where it trains by itself.

    Args:
        running: whether its turn has come.
        problem: found in the queue.
    """
    found = outlook()
    place = None if running else found.places.get(str(folder.path))
    where = f"queued, {place.text}" if place else shares(found) if running else ""
    return "; ".join(filter(None, [where, found.settings.problem, problem]))


def shares(found: Outlook) -> str:
    """Warn if active runs oversubscribe the CPU; empty where they do not."""
    cores, runs = found.cores, [ticket for ticket in found.training if not ticket.gpus]
    if len(runs) < 2 or found.threads <= cores:
        return ""
    here = f"{many(found.threads, 'thread')} on {many(cores, 'core')}"
    return f"{len(runs)} runs train here with {here}, so each is slower than forecast"


def queued_text(folder: RunFolder, state: RunState) -> str:
    """Return the message of a run in state ``queued``."""
    place = place_of(folder)
    if place is not None:
        return place.text
    # In a shared folder it may wait on another machine.
    if lock_held(folder) or state.elsewhere or launcher_says(folder):
        return state.message
    return (
        f"the process that waited for its turn is gone, as after a reboot: `workbench resume {folder.id}` queues it "
        "again, as the next launch does"
    )


def expected_starts(
    tickets: Sequence[Ticket], settings: QueueSettings, remaining: Callable[[Ticket], float | None]
) -> dict[str, float | None]:
    """Return the seconds until those that wait are expected to start, by run folder; None: unknown.

    Args:
        remaining: seconds that a run still trains, from now or from its start; None: unknown.
    """
    now, waiting = 0.0, in_line(tickets)
    starts = {ticket.folder: math.inf for ticket in waiting}
    ends = {ticket: _or_never(remaining(ticket)) for ticket in training(tickets)}
    # Each takes a core at least, so that of thousands that wait only the first few can be next.
    simple = settings.running_per_owner is None and not any(ticket.gpus for ticket in waiting)
    most = max([settings.capacity, *(cores_for(ticket, settings) for ticket in waiting)])
    near = most + 1 if simple else len(waiting)
    while waiting and now < math.inf:
        started = next_of(list(ends), waiting[:near], settings)
        for ticket, gpu in started:
            starts[ticket.folder] = now
            ends[replace(ticket, running=True, gpu=gpu)] = now + _or_never(remaining(ticket))
        gone = {ticket.folder for ticket, _ in started}
        waiting = [ticket for ticket in waiting[:near] if ticket.folder not in gone] + waiting[near:]
        now = min(ends.values(), default=math.inf)
        ends = {ticket: end for ticket, end in ends.items() if end > now}
    return {folder: None if math.isinf(start) else start for folder, start in starts.items()}


def remaining_seconds(ticket: Ticket) -> float | None:
    """Return how long a run still trains, from its own files; None: unknown."""
    state = read_state(ticket.run)
    # Paused: until somebody resumes it. A budget in seconds says nothing of preparations.
    if state.status == "paused" or _prepares(state):
        return None
    total = _measured_total(state) or _stated_total(ticket)
    return None if total is None else max(0.0, total - state.seconds)


def _prepares(state: RunState) -> bool:
    return state.status == "starting" and state.message.startswith(PREPARING)


def about(seconds: float) -> str:
    """Return a duration that is a guess, in words.

    Example:
        >>> about(20), about(170), about(5000)
        ('within a minute', 'in about 3 min', 'in about 1.4 h')
    """
    if seconds < 45:
        return "within a minute"
    if seconds < 90 * 60:
        return f"in about {round(seconds / 60) or 1} min"
    return f"in about {seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"in about {round(seconds / 86400)} days"


def _measured_total(state: RunState) -> float | None:
    """Return the seconds of a whole run by how far it has come."""
    if state.progress < _TELLING or state.seconds < _TELLING_SECONDS:
        return None
    return state.seconds / min(state.progress, 1.0)


def _stated_total(ticket: Ticket) -> float | None:
    budget = read_object(ticket.run.recipe).get("budget")
    if isinstance(budget, dict) and budget.get("unit") == "seconds":
        return _positive(budget.get("amount"))
    return _positive(read_object(ticket.run.forecast).get("seconds"))


def obstacle(ticket: Ticket, found: Outlook) -> str:
    """Return what keeps a run that waits from training now: a limit, a GPU or cores; empty where only others do."""
    busy, limit = [*found.training, *found.paused, *found.ending], found.settings.running_per_owner
    own = sum(owner_of(each) == owner_of(ticket) for each in busy)
    if limit is not None and own >= limit:
        return f"{many(own, 'run')} of {ticket.owner} train, as many as running_per_owner allows"
    if ticket.gpus:
        held = [each for each in busy if each.gpu in ticket.gpus]
        full = len(held) >= found.settings.runs_per_gpu * len(ticket.gpus)
        return f"all of its {many(len(ticket.gpus), 'GPU')} are taken" if full else ""
    cores = cores_for(ticket, found.settings)
    needed, taken = min(ticket.threads, cores), sum(min(each.threads, cores) for each in busy if not each.gpus)
    return f"it needs {many(needed, 'core')}, and {taken} of {cores} are taken" if needed + taken > cores else ""


def _positive(value: Any) -> float | None:
    seconds = number(value)
    return seconds if 0 < seconds < math.inf else None


def _or_never(seconds: float | None) -> float:
    return math.inf if seconds is None else seconds


class _Latest:
    """The last look, shared by all who show runs: a table of a thousand runs asks for each of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: tuple[float, Queue | None, Outlook] | None = None

    def outlook(self) -> Outlook:
        queue = queue_here()
        with self._lock:
            if self._found is None or self._found[1] != queue or time.monotonic() - self._found[0] > LOOK_SECONDS:
                self._found = time.monotonic(), queue, outlook(queue)
            return self._found[2]


_LATEST = _Latest()
