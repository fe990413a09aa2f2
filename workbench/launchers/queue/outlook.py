"""What trains on this machine now, and when the turn of a run that waits is expected.

The remaining seconds of what trains, and what runs ahead of it take: from how far they have come, from a budget in
seconds, from the forecast that somebody had made, or from a run of the same shape that trains or has finished here.
Where none of them tells, the start is unknown, and is said to be.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workbench.base.json_lines import number
from workbench.base.text import many
from workbench.launchers.queue.line import cores_for, in_line, next_of, training
from workbench.launchers.queue.queue_folder import Queue, queue_here
from workbench.launchers.queue.settings import QueueSettings
from workbench.launchers.queue.ticket import Ticket
from workbench.store.folder import RunFolder, read_object
from workbench.store.state import ENDED_WELL, PREPARING, RunState, lock_held, read_state

LOOK_SECONDS = 1.0
"""A look at the queue serves whoever asks within so long."""
# A share of a run that tells how long the whole takes; the first steps compile and warm caches.
_TELLING, _TELLING_SECONDS = 0.01, 2.0
_SHAPE = ("data", "objective", "architecture", "depth", "execution", "budget")
_UNKNOWN = "no one can say yet how long the runs before it take"


@dataclass(frozen=True)
class Place:
    """Where a run stands in the queue.

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
        """Cores that trainings take at once: as set, else the most that a process of the queue may use, or this one."""
        known = (*self.training, *self.waiting, *self.paused, *self.ending)
        return self.settings.cores or max(self.settings.capacity, *(ticket.cores for ticket in known), 1)

    @property
    def threads(self) -> int:
        """Cores that what trains now takes."""
        return cores_of(self.training)


def cores_of(tickets: Iterable[Ticket]) -> int:
    """Cores that runs take together; those on a GPU take none."""
    return sum(ticket.threads for ticket in tickets if not ticket.gpus)


def outlook(queue: Queue | None = None) -> Outlook:
    """Look at the queue of this machine now; empty where there is none."""
    queue = queue or queue_here()
    if queue is None:
        return Outlook([], [], {}, [], QueueSettings())
    tickets, settings = queue.tickets(), queue.settings()
    seconds = expected_starts(tickets, settings, remaining_seconds(tickets, queue.seconds_by_shape()))
    waiting = in_line(tickets)
    trains, paused, done = _by_status(tickets)
    prepare = [ticket for ticket in trains if _prepares(read_state(ticket.run))]
    names = [found[0].called if found else "" for found in (paused, prepare)]
    places = {ticket.folder: Place(n, seconds[ticket.folder], *names) for n, ticket in enumerate(waiting, 1)}
    dead = [each for each in tickets if not each.alive and read_state(each.run).status == "queued"]
    return Outlook(trains, waiting, places, dead, settings, paused, done)


def training_now() -> list[Ticket]:
    """What trains on this machine now, as far as its queue knows: runs of this package, each with its ``threads``.

    For the words beside a forecast, which is of an idle machine: a run that is paused keeps its turn and trains not.
    """
    queue = queue_here()
    return [] if queue is None else _by_status(queue.tickets())[0]


def _by_status(tickets: Sequence[Ticket]) -> tuple[list[Ticket], list[Ticket], list[Ticket]]:
    """Those whose turn it is: what trains, what is paused, and what is done while its process comes to its end."""
    found: tuple[list[Ticket], list[Ticket], list[Ticket]] = ([], [], [])
    for ticket in training(tickets):
        status = read_state(ticket.run).status
        # A folder that is gone reads as lost; its ticket says that a process of it is there.
        found[1 if status == "paused" else 2 if status in (*ENDED_WELL, "failed") else 0].append(ticket)
    return found


def place_of(folder: RunFolder) -> Place | None:
    """Where a run stands in this machine's queue, at most :data:`LOOK_SECONDS` old; None: it does not wait there."""
    return _LATEST.outlook().places.get(str(folder.path))


def known_here() -> set[str]:
    """Folders of runs that train, stand still or wait on this machine, at most :data:`LOOK_SECONDS` ago."""
    found = _LATEST.outlook()
    return {ticket.folder for ticket in (*found.training, *found.paused, *found.ending, *found.waiting)}


def notice(folder: RunFolder, running: bool, problem: str = "") -> str:
    """What whoever launches a run must hear of the queue; empty where it trains by itself.

    Args:
        running: whether its turn has come.
        problem: found in the queue.
    """
    found = outlook()
    place = None if running else found.places.get(str(folder.path))
    where = f"queued, {place.text}" if place else shares(found) if running else ""
    return "; ".join(filter(None, [where, found.settings.problem, problem]))


def shares(found: Outlook) -> str:
    """That what trains now is more than the machine has cores for, in a sentence; empty where it is not."""
    cores, runs = found.cores, [ticket for ticket in found.training if not ticket.gpus]
    if len(runs) < 2 or found.threads <= cores:
        return ""
    here = f"{many(found.threads, 'thread')} on {many(cores, 'core')}"
    return f"{len(runs)} runs train here with {here}, so each is slower than forecast"


def queued_text(folder: RunFolder, state: RunState) -> str:
    """What a run in state ``queued`` has to say, in a sentence."""
    place = place_of(folder)
    if place is not None:
        return place.text
    # In a shared folder it may wait on another machine.
    if lock_held(folder) or state.elsewhere:
        return state.message
    return (
        f"the process that waited for its turn is gone, as after a reboot: `workbench resume {folder.id}` queues it "
        "again, as the next launch does"
    )


def expected_starts(
    tickets: Sequence[Ticket], settings: QueueSettings, remaining: Callable[[Ticket], float | None]
) -> dict[str, float | None]:
    """Seconds until those that wait are expected to start, by run folder; None: unknown.

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


def remaining_seconds(
    tickets: Sequence[Ticket], seconds_by_shape: Mapping[str, float] | None = None
) -> Callable[[Ticket], float | None]:
    """How long each still trains, from its own files and those of the others.

    Args:
        seconds_by_shape: of runs that have finished.
    """
    totals = dict(seconds_by_shape or {})
    for ticket in training(tickets):
        total = _measured_total(read_state(ticket.run))
        if total is not None:
            totals[shape(_recipe(ticket.folder))] = total

    def remaining(ticket: Ticket) -> float | None:
        state = read_state(ticket.run)
        if state.status == "paused":
            return None  # until somebody resumes it
        if _prepares(state):
            return None  # a budget in seconds says nothing of it
        total = _measured_total(state) or _stated_total(ticket) or totals.get(shape(_recipe(ticket.folder)))
        return None if total is None else max(0.0, total - state.seconds)

    return remaining


def _prepares(state: RunState) -> bool:
    return state.status == "starting" and state.message.startswith(PREPARING)


def about(seconds: float) -> str:
    """A duration that is a guess, in words.

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
    """Seconds of a whole run by how far it has come."""
    if state.progress < _TELLING or state.seconds < _TELLING_SECONDS:
        return None
    return state.seconds / min(state.progress, 1.0)


def _stated_total(ticket: Ticket) -> float | None:
    budget = _recipe(ticket.folder).get("budget")
    if isinstance(budget, dict) and budget.get("unit") == "seconds":
        return _positive(budget.get("amount"))
    return _positive(read_object(ticket.run.forecast).get("seconds"))


def _positive(value: Any) -> float | None:
    seconds = number(value)
    return seconds if 0 < seconds < math.inf else None


def shape(recipe: Mapping[str, Any]) -> str:
    """What decides how long a run takes, as a short name: runs of one shape differ in seed, name, or optimizer."""
    described = json.dumps([recipe.get(axis) for axis in _SHAPE], sort_keys=True)
    return hashlib.sha256(described.encode()).hexdigest()[:16]


def remember_end(folder: RunFolder) -> None:
    """Keep how long a run that has finished trained, for those that wait; a queue that cannot be written forgets."""
    queue, state = queue_here(), read_state(folder)
    if queue is not None and state.status == "finished" and state.seconds > 0:
        with suppress(OSError):
            queue.remember(shape(_recipe(str(folder.path))), state.seconds)


def _recipe(folder: str) -> dict[str, Any]:
    return read_object(RunFolder(Path(folder)).recipe)


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
