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
_ADDED = {"cores": 0}
"""What tickets of earlier versions, which may still wait, do not say."""
# Written in place under its lock: changes must need no new space, since the disk may be full by then.
_ROOM_BYTES = 4096


@dataclass(frozen=True)
class Ticket:
    """A reading of a ticket.

    Attributes:
        folder: of the run. name: what people called it as it entered. owner: in whose name it waits; data from anybody.
        threads: cores that it takes on the CPU. cores: that the process which entered it may compute on; 0: unknown.
        gpus: of which it takes one instead, as ``CUDA_VISIBLE_DEVICES`` names
            them; empty for a run on the CPU.
        priority: higher ones go first. round, number: order tickets of one priority (:mod:`.line`).
        running: its turn has come. gpu: the one that it took, empty before and on the CPU.
        entered: Unix seconds.
        uid: of the user whose file it is; not written in it. alive: a process holds it.
    """

    folder: str
    name: str = ""
    owner: str = ""
    threads: int = 1
    cores: int = 0
    gpus: tuple[str, ...] = ()
    priority: int = 0
    round: int = 0
    number: int = 0
    running: bool = False
    gpu: str = ""
    entered: float = 0.0
    uid: int = -1
    alive: bool = True

    @property
    def run(self) -> RunFolder:
        """The run's folder."""
        return RunFolder(Path(self.folder))

    @property
    def called(self) -> str:
        """What people call the run now, on one printable line; :attr:`name` where its folder does not tell."""
        now = name_of(self.run)
        return plain(self.name if now == self.run.id else now)

    @property
    def file(self) -> str:
        """Name of its file: one per run folder, however often it enters."""
        return _file(self.folder)


_WRITTEN = tuple(field.name for field in fields(Ticket) if field.name not in ("uid", "alive"))


def ticket_of(folder: RunFolder, priority: int = 0) -> Ticket:
    """The ticket with which a run enters, number and time aside."""
    recipe, needs = read_object(folder.recipe), read_object(folder.needs)
    gpus = needs.get("gpus")
    return Ticket(
        folder=str(folder.path),
        name=plain(name_of(folder, recipe)),
        owner=present_owner(),
        threads=_threads(recipe),
        cores=physical_cores(),
        gpus=tuple(gpu for gpu in gpus if isinstance(gpu, str)) if isinstance(gpus, list) else (),
        priority=priority,
        uid=os.getuid(),
    )


def present_owner() -> str:
    """In whose name this process enters: ``$WORKBENCH_OWNER``, for people who share one account; else the user."""
    return plain(os.environ.get(OWNER_VARIABLE) or user_name())


def encoded(ticket: Ticket) -> bytes:
    """A ticket as its file holds it."""
    fields_of = asdict(ticket)
    return json.dumps({name: fields_of[name] for name in _WRITTEN}, indent=1).encode().ljust(_ROOM_BYTES)


def decoded(data: bytes) -> Ticket | None:
    """A ticket from its file; None when that is damaged."""
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


def _threads(recipe: dict[str, Any]) -> int:
    execution = recipe.get("execution")
    asked = execution.get("threads") if isinstance(execution, dict) else None
    if isinstance(asked, int) and asked >= 1:
        return asked
    # What torch takes where a recipe says nothing.
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
