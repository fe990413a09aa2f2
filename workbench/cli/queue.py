"""``workbench queue``: what trains and what waits on this machine, and changing it. Imports no torch."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from workbench.base.errors import RunError, WorkbenchError
from workbench.base.text import many, plain_lines
from workbench.client.run import Run
from workbench.launchers.queue.changes import Moved, move, set_limits, set_priority, this_queue, waiting_ticket
from workbench.launchers.queue.orphans import start_orphans
from workbench.launchers.queue.outlook import Outlook, cores_of, obstacle, outlook
from workbench.launchers.queue.settings import NAMES
from workbench.launchers.queue.ticket import Ticket
from workbench.store.folder import runs_root

Answer = tuple[str, dict[str, Any]]


def queue(options: argparse.Namespace) -> int:
    """Do what was asked, print what came of it.

    Raises:
        RunError: no such run waits, the arguments are wrong, or the queue is switched off or cannot be changed.
    """
    text, data = _ACTIONS[options.action](options)
    print(json.dumps(data) if options.json else plain_lines(text))
    return 0


def _list(options: argparse.Namespace) -> Answer:
    _arguments(options, 0, "list")
    folder, found = this_queue().folder, outlook(this_queue())
    data = {
        "folder": str(folder),
        "cores": found.cores,
        "threads": found.threads,
        "training": [_as_data(ticket) for ticket in found.training],
        "paused": [_as_data(ticket) for ticket in found.paused],
        "ending": [_as_data(ticket) for ticket in found.ending],
        "waiting": [
            {
                **_as_data(ticket),
                "position": place.position,
                "expected_start_seconds": place.expected_seconds,
                "obstacle": obstacle(ticket, found),
            }
            for ticket in found.waiting
            for place in (found.places[ticket.folder],)
        ],
        "without_process": [_as_data(ticket) for ticket in found.without_process],
        "problem": found.settings.problem,
    }
    return _text(found), data


def _text(found: Outlook) -> str:
    cores = found.cores
    counts = [f"{len(found.training)} training ({found.threads} of {many(cores, 'core')})"]
    if found.paused:
        counts.append(f"{len(found.paused)} paused (keeps {_cores(cores_of(found.paused))})")
    if found.ending:
        counts.append(f"{len(found.ending)} ending")
    lines = [", ".join([*counts, f"{len(found.waiting)} waiting"])]
    lines += [f"  {each.run.id}  {_what(each)}" for each in found.training]
    lines += [f"  {each.run.id}  {_what(each)}, paused: keeps its turn, resume or stop it" for each in found.paused]
    lines += [f"  {each.run.id}  {_what(each)}, ending" for each in found.ending]
    for each in found.waiting:
        why = obstacle(each, found)
        lines.append(f"  {each.run.id}  {_what(each)}, {found.places[each.folder].text}{why and '; '}{why}")
    lines += [
        f"  {each.run.id}  the process that waited is gone: `workbench queue start` queues it again"
        for each in found.without_process
    ]
    return "\n".join([*lines, *filter(None, [found.settings.problem])])


def _cores(count: int) -> str:
    return many(count, "core") if count else "its GPU"


def _what(ticket: Ticket) -> str:
    takes = f"GPU {ticket.gpu}".strip() if ticket.gpus else many(ticket.threads, "thread")
    priority = f", priority {ticket.priority}" if ticket.priority else ""
    return f"{ticket.called} of {ticket.owner}, {takes}{priority}"


def _move(options: argparse.Namespace) -> Answer:
    run, place = _arguments(options, 2, "move RUN PLACE")
    return _placed(move(run, _number(place, "PLACE")))


def _priority(options: argparse.Namespace) -> Answer:
    run, priority = _arguments(options, 2, "priority RUN NUMBER")
    return _placed(set_priority(run, _number(priority, "NUMBER")))


def _placed(moved: Moved) -> Answer:
    text, position = f"{moved.run}: {moved.text}", None if moved.place is None else moved.place.position
    return text, {"run": moved.run, "position": position, "priority": moved.priority, "text": text}


def _cancel(options: argparse.Namespace) -> Answer:
    if not options.arguments:
        raise RunError("which? `workbench queue cancel RUN ...`")
    known = this_queue().tickets()
    try:
        tickets = [waiting_ticket(known, run) for run in options.arguments]
    except RunError as error:
        others = "; nothing was cancelled, name the others alone" if len(options.arguments) > 1 else ""
        raise RunError(f"{error}{others}") from None
    said = {ticket.run.id: Run(ticket.run).stop(timeout=30.0) for ticket in tickets}
    return "\n".join(f"{run}: {text}" for run, text in said.items()), {"cancelled": list(said)}


def _start(options: argparse.Namespace) -> Answer:
    _arguments(options, 0, "start [--runs DIR]")
    started = [folder.id for folder in start_orphans(runs_root(options.runs))]
    text = "\n".join(f"{run}: queued again" for run in started) or "no run waits without a process"
    return text, {"started": started}


def _set(options: argparse.Namespace) -> Answer:
    changes = {}
    for text in options.arguments:
        name, equals, value = text.partition("=")
        if not equals:
            raise RunError(f"'{text}' is not NAME=NUMBER; for example `workbench queue set cores=2`")
        changes[name] = _number(value, name) if value else None
    settings = set_limits(changes)
    values = {name: value for name, value in asdict(settings).items() if name in NAMES} | {"cores": settings.capacity}
    shown = "\n".join(f"{name}={'no limit' if value is None else value}" for name, value in values.items())
    return shown, values


def _arguments(options: argparse.Namespace, count: int, usage: str) -> list[str]:
    if len(options.arguments) != count:
        raise RunError(f"`workbench queue {usage}` takes {count or 'no'} arguments, got {len(options.arguments)}")
    arguments: list[str] = options.arguments
    return arguments


def _number(text: str, what: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise WorkbenchError(f"{what}: '{text}' is not a whole number") from None


def _as_data(ticket: Ticket) -> dict[str, Any]:
    kept = ("folder", "owner", "threads", "gpu", "priority", "entered")
    return {"run": ticket.run.id, "name": ticket.called, **{name: getattr(ticket, name) for name in kept}}


_ACTIONS: dict[str, Callable[[argparse.Namespace], Answer]] = {
    "list": _list, "move": _move, "cancel": _cancel, "priority": _priority, "start": _start, "set": _set,
}  # fmt: skip
