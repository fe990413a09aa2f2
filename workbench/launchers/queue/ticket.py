"""One run's place in the queue as a file: what it takes of the machine, whose it is, whether its turn has come."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from workbench.base.text import plain
from workbench.launchers.queue.settings import physical_cores
from workbench.store.folder import RunFolder, parsed_json, read_object
from workbench.store.labels import name_of
from workbench.store.lease import user_name

SUFFIX = ".ticket"
OWNER_VARIABLE = "WORKBENCH_OWNER"
RESERVED_SECONDS = 30.0
"""Longest time from a launch to the supervisor that holds the ticket."""
_ADDED = {"cores": 0, "processes": 1, "reserved": 0.0}
"""Values for what tickets of earlier versions, which may still wait, do not say."""
# Written in place under its lock: changes must need no new space, since the disk may be full by then.
_ROOM_BYTES = 4096


@dataclass(frozen=True)
class Needs:
    """The part of a machine that a run takes.

    Attributes:
        processes: trainers. threads: cores of the CPU that all of them take.
        gpus: of which each takes one instead, as ``CUDA_VISIBLE_DEVICES`` names them; empty for a run on the CPU.
    """

    processes: int = 1
    threads: int = 1
    gpus: tuple[str, ...] = ()

    @classmethod
    def of(cls, folder: RunFolder, recipe: dict[str, Any]) -> Needs:
        """Read what a run needs; runs of earlier versions wrote down their GPUs alone, or nothing."""
        raw, execution = read_object(folder.needs), recipe.get("execution")
        gpus, processes, threads = raw.get("gpus"), raw.get("processes"), raw.get("threads")
        if not isinstance(threads, int) and isinstance(execution, dict):
            threads = execution.get("threads")
        processes = processes if isinstance(processes, int) and processes >= 1 else 1
        each = threads if isinstance(threads, int) and threads >= 1 else None
        return cls(
            processes,
            # Without a word, they share the cores.
            processes * each if each else max(processes, default_threads()),
            tuple(gpu for gpu in gpus if isinstance(gpu, str)) if isinstance(gpus, list) else (),
        )


@dataclass(frozen=True)
class Ticket:
    """A reading of a ticket.

    Attributes:
        folder: of the run. name: what people called it as it entered. owner: in whose name it waits; data from anybody.
        processes, threads, gpus: its :class:`Needs`.
        cores: that the process which entered it may compute on; 0: unknown.
        priority: higher ones go first. round, number: order tickets of one priority (:mod:`.line`).
        running: its turn has come. gpu: the one that it took, empty before and on the CPU.
        entered: Unix seconds. reserved: until when it counts although nobody holds it: its supervisor is starting.
        uid: of the user whose file it is; not written in it. alive: a process holds it.
    """

    folder: str
    name: str = ""
    owner: str = ""
    processes: int = 1
    threads: int = 1
    cores: int = 0
    gpus: tuple[str, ...] = ()
    priority: int = 0
    round: int = 0
    number: int = 0
    running: bool = False
    gpu: str = ""
    entered: float = 0.0
    reserved: float = 0.0
    uid: int = -1
    alive: bool = True

    @property
    def run(self) -> RunFolder:
        """Return the run's folder."""
        return RunFolder(Path(self.folder))

    @property
    def called(self) -> str:
        """Return the present name of the run on one printable line; :attr:`name` where its folder does not tell."""
        now = name_of(self.run)
        return plain(self.name if now == self.run.id else now)

    @property
    def file(self) -> str:
        """Return the name of its file: one per run folder, however often it enters."""
        return _file(self.folder)


_WRITTEN = tuple(field.name for field in fields(Ticket) if field.name not in ("uid", "alive"))


def ticket_of(folder: RunFolder, priority: int = 0) -> Ticket:
    """Return the ticket with which a run enters, number and time aside."""
    recipe = read_object(folder.recipe)
    return Ticket(
        folder=str(folder.path),
        name=plain(name_of(folder, recipe)),
        owner=present_owner(),
        cores=physical_cores(),
        priority=priority,
        uid=os.getuid(),
        **vars(Needs.of(folder, recipe)),
    )


def present_owner() -> str:
    """Return the owner of new tickets: ``$WORKBENCH_OWNER``, for people who share an account; else the user."""
    return plain(os.environ.get(OWNER_VARIABLE) or user_name())


def encoded(ticket: Ticket) -> bytes:
    """Return a ticket as its file holds it."""
    fields_of = asdict(ticket)
    return json.dumps({name: fields_of[name] for name in _WRITTEN}, indent=1).encode().ljust(_ROOM_BYTES)


def decoded(data: bytes) -> Ticket | None:
    """Return a ticket from its file; None when that is damaged."""
    try:
        raw = {**_ADDED, **parsed_json(data)}
        checked = {name: _READERS[str(field.type)](raw[name]) for name, field in _FIELDS.items()}
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    ticket = Ticket(**checked)
    return ticket if os.path.isabs(ticket.folder) and ticket.threads >= 1 else None


@functools.lru_cache(maxsize=1024)
def _file(folder: str) -> str:
    # Runs folders that were copied hold runs of the same id.
    return f"{os.path.basename(folder)}-{hashlib.sha256(folder.encode()).hexdigest()[:8]}{SUFFIX}"


def default_threads() -> int:
    """Return the threads that torch takes where a recipe says nothing."""
    stated = os.environ.get("OMP_NUM_THREADS", "")
    return int(stated) if stated.isdecimal() and int(stated) else physical_cores()


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError
    return value


_FIELDS = {field.name: field for field in fields(Ticket) if field.name in _WRITTEN}
_READERS: dict[str, Any] = {
    "str": _text,
    "int": _whole,
    "float": float,
    "bool": bool,
    "tuple[str, ...]": lambda texts: tuple(map(_text, texts)),
}
