"""The contract of a launcher: a choice that gets a run folder and brings a supervisor to life somewhere.

State, telemetry, control and checkpoints stay in the run folder, whatever the launcher: it owns none of them. A new one
is one file here, imported where :func:`launcher_named` looks, or a class that a program defines::

    class Cluster(Launcher):
        kind: Literal["cluster"] = "cluster"
        partition: str = Field("gpu", description="where jobs wait")

        def submit(self, folder, resume): ...
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from importlib import import_module
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

from workbench.base.errors import RunError, check_known
from workbench.launchers.launched import Launched
from workbench.store.folder import RunFolder
from workbench.store.state import read_state, take_lock, write_state

Handle = dict[str, Any]
"""All that a launcher needs to find a run again, as JSON holds it; kept in ``launched.json``."""
HOMES = tuple(f"workbench.launchers.{name}" for name in ("local", "slurm", "ray", "hand"))
"""Modules that define the launchers of this package."""
SUBMITTING_SECONDS = 30.0
"""Longest time from the making of a run folder to its handle; whoever takes longer was killed."""
_KINDS: dict[str, type[Launcher]] = {}


class Launcher(BaseModel, ABC):
    """Base of the launchers: frozen, closed, found by ``kind``; it keeps nothing between calls."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)
    kind: str
    once: ClassVar[tuple[str, ...]] = ()
    """Knobs that hold for one launch; a resume has their defaults."""
    queues: ClassVar[bool] = False
    """True where runs take turns in the queue of this machine."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        kind = cls.model_fields["kind"].default
        if isinstance(kind, str):
            _KINDS[kind] = cls

    def __init__(self, **knobs: Any) -> None:
        try:
            super().__init__(**knobs)
        except ValidationError as error:
            legal = ", ".join(sorted(type(self).model_fields))
            why = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
            raise RunError(f"launcher {type(self).__name__}: {why}; its knobs are {legal}") from None

    @abstractmethod
    def check(self, recipe: Any) -> None:
        """Refuse a recipe that cannot be trained there, before there is a run.

        Raises:
            RecipeError, EngineError, RunError: the message says why, and the way out.
        """

    @abstractmethod
    def submit(self, folder: RunFolder, resume: bool) -> Handle:
        """Bring a supervisor of a run to life (:func:`workbench.launchers.supervisor.main`); wait for nothing.

        Args:
            folder: whole; nobody holds its lock. The supervisor needs nothing else.
            resume: go on from the last checkpoint. The state of the run says so, too.

        Raises:
            OSError: the supervisor could not be started.
        """

    @abstractmethod
    def alive(self, handle: Handle) -> bool | None:
        """Return whether a supervisor is there or will come; None where nobody can tell from here."""

    @abstractmethod
    def cancel(self, handle: Handle) -> None:
        """Withdraw a supervisor that has not begun, or ask one that has to end; one that is gone is no error."""

    def takes_back(self) -> str:
        """Return why a supervisor that is told to end gives way to others, for a later start by the same launcher.

        Called where the supervisor runs; empty where whoever tells it to end means the run.
        """
        return ""

    def ending(self, handle: Handle) -> tuple[str, str]:
        """Return how a supervisor that is gone has ended, where that is known: a final status, and why in a sentence.

        For runs whose folder does not say: withdrawn before they began, or on a machine that does not see the folder.
        """
        return "", ""

    def notice(self, folder: RunFolder, handle: Handle) -> str:
        """Return what whoever launches a run must hear, in a line; empty as a rule."""
        return ""


def launcher_named(on: str | Launcher, **knobs: Any) -> Launcher:
    """Return the launcher that ``launch(on=...)`` means.

    Args:
        on: a name, one with knobs (``slurm:nodes=2,partition=gpu``), or a launcher.
        knobs: values that replace its own.

    Raises:
        RunError: no such launcher; the message lists them. Or it has no such knob.
    """
    if isinstance(on, Launcher):
        return type(on)(**{**on.model_dump(), **knobs}) if knobs else on
    on, colon, spec = on.partition(":")
    if colon:
        pairs = [part.partition("=") for part in spec.split(",")]
        if not all(name and equals for name, equals, _ in pairs):
            raise RunError(f"on: '{on}:{spec}' is not NAME:KNOB=VALUE,KNOB=VALUE, as in slurm:nodes=2,partition=gpu")
        knobs = {name.strip(): value for name, _, value in pairs} | knobs
    for home in HOMES:
        import_module(home)
    check_known("on", on, _KINDS, RunError)
    return _KINDS[on](**knobs)


def launcher_of(folder: RunFolder, *, again: bool = False) -> Launcher:
    """Return the launcher that a run was launched with.

    Args:
        again: for a resume: without the knobs that hold for one launch.

    Raises:
        RunError: this process knows no such launcher, or it has other knobs by now.
    """
    launched = Launched.read(folder)
    launcher = launcher_named(launched.on, **launched.knobs)
    kept = {name: knob for name, knob in launched.knobs.items() if name not in launcher.once}
    return launcher_named(launched.on, **kept) if again else launcher


def alive(folder: RunFolder) -> bool | None:
    """Return a launcher's word on a run whose lock is free; None: it has none."""
    launched = Launched.read(folder)
    if not launched.handle:
        return True if 0 <= time.time() - launched.time < SUBMITTING_SECONDS else None
    try:
        return launcher_of(folder).alive(launched.handle)
    except RunError:
        return None


def ended(folder: RunFolder) -> str:
    """Have the state of a run say how it ended, where its launcher alone knows; returns its status then, else nothing.

    Such as one that was withdrawn at a cluster before it began: no process of it was ever there to write it down.
    """
    launched = Launched.read(folder)
    if launched.on in ("local", "inline") or not launched.handle:
        return ""
    try:
        launcher = launcher_of(folder)
        if launcher.alive(launched.handle) is not False:
            return ""
        status, why = launcher.ending(launched.handle)
        if not status:
            return ""
        lock = take_lock(folder, 0.2)
    except (RunError, OSError):
        return ""
    try:
        # Written meanwhile, or begun anew.
        state = read_state(folder)
        if not state.final and Launched.read(folder).handle == launched.handle:
            error, message = (why, "") if status == "failed" else ("", why)
            state = write_state(folder, status=status, error=error, message=message)
        return state.status
    except OSError:
        return ""
    finally:
        os.close(lock)
