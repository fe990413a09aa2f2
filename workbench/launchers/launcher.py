"""What a launcher is: it brings a supervisor and its trainer to life somewhere, and nothing else.

State, telemetry, control and checkpoints stay in the run folder, whatever the engine: a launcher never owns them.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from workbench.base.errors import RunError
from workbench.base.heap_settings import heap_settings
from workbench.launchers.launch_environment import launch_environment
from workbench.launchers.queue.outlook import notice
from workbench.launchers.queue.turn import Turn, enter
from workbench.launchers.queue.waiting import mark_waiting
from workbench.store import control
from workbench.store.attempts import tell_attempt
from workbench.store.folder import RunFolder, read_object, write_json
from workbench.store.resume_counters import resuming, standing
from workbench.store.state import LOCK_VARIABLE, fill_reserve, process_identity, read_state, take_lock, write_state

# A run that was just stopped lets go of its lock only after its last status is written and its workers are gone.
RESUME_PATIENCE_SECONDS = 10.0
Say = Callable[[str], None]


@dataclass(frozen=True)
class Handle:
    """Where a run was put, as saved in ``launched.json``; any later process can find it again.

    Attributes:
        on: name of the launcher.
        folder: working folder of the launching process; relative paths of the recipe start there.
        pid: of the supervisor, a hint for people (0 before it started; of a run that has waited, of the one that did).
        python, settings: of the launching process (:mod:`workbench.launchers.launch_environment`).
    """

    on: str
    folder: str
    pid: int = 0
    python: str = ""
    settings: dict[str, str] = field(default_factory=dict)


class Launcher(ABC):
    """Base of the launchers. One instance serves all runs and keeps nothing between calls."""

    name: ClassVar[str]

    @abstractmethod
    def start(self, folder: RunFolder, descriptors: Mapping[str, int], working_folder: Path, resume: bool) -> int:
        """Start a supervisor; return its pid without waiting for anything.

        Args:
            descriptors: that it inherits (the run's lock, its place in the queue), by the environment variable that
                tells it the number. A run whose state says ``queued`` may wait for hours.

        Raises:
            OSError: the process could not be started.
        """

    def submit(
        self, folder: RunFolder, lock: int, *, resume: bool = False, queue: bool = True, priority: int = 0,
        say: Say | None = None,
    ) -> Handle:  # fmt: skip
        """Hand a prepared run (see :func:`begin`) over to a supervisor; on a busy machine it waits for its turn there.

        Args:
            lock: descriptor of the run's lock; closed here, the supervisor holds it from now on.
            resume: go on from the last checkpoint.
            queue: else it starts at once, whatever else trains. priority: among those that wait.
            say: called with one line where the run waits, or shares the machine.

        Raises:
            RunError: the supervisor could not be started; the run is marked failed.
        """
        turn: Turn | None = None
        try:
            place = working_folder(folder) if resume else Path.cwd()
            # Once before the start, without a pid: should this process die right after it, the run can still be
            # resumed.
            handle = Handle(self.name, str(place), **launch_environment())
            write_json(folder.launched, asdict(handle))
            # Under a umask that lets the group write, nobody could trust what is named there.
            folder.launched.chmod(0o644)
            turn = enter(folder, wait=queue, priority=priority)
            mark_waiting(folder, turn)
            line = notice(folder, turn.running, turn.problem)
            handle = replace(handle, pid=self.start(folder, {LOCK_VARIABLE: lock, **turn.descriptors}, place, resume))
        except OSError as error:
            if turn is not None:
                turn.leave()
            message = f"the supervisor of run '{folder.id}' could not be started: {error}"
            write_state(folder, status="failed", error=message)
            raise RunError(message) from None
        finally:
            # The supervisor holds a copy of its own; ours would keep the run "alive" for as long as this kernel lives.
            os.close(lock)
            if turn is not None:
                turn.hand_over()
        if line and say is not None:
            say(line)
        with contextlib.suppress(OSError):
            write_json(folder.launched, asdict(handle), durable=False)
            folder.launched.chmod(0o644)
        return handle


def working_folder(folder: RunFolder) -> Path:
    """Where relative paths of a run's recipe start: as at its launch, wherever it is resumed from."""
    first = read_object(folder.launched).get("folder")
    # Deleted since: a recipe of absolute paths, or of none, does not need it.
    return Path(first) if isinstance(first, str) and Path(first).is_dir() else Path.cwd()


def begin(folder: RunFolder, attempt: int = 1) -> int:
    """Become responsible for a run: take its lock, mark it ``starting``; returns the lock's descriptor.

    Args:
        attempt: one more than that of the state in which the caller saw the run ended; 1 begins it.

    Raises:
        RunError: another process trains this run, or has resumed it meanwhile.
        OSError: the disk is full or the folder cannot be written to; the lock is free again.
    """
    resume = attempt > 1
    # First of all: whoever has no lock must not touch the state of a run that goes on.
    lock = _lock_of_attempt(folder, attempt) if resume else take_lock(folder)
    try:
        _check_attempt(folder, attempt)
        if resume:
            control.dismiss_pending(folder, "the run ended before it could answer")
            # The attempt before may have given it up; one that can train without is not refused for it.
            with contextlib.suppress(OSError):
                fill_reserve(folder)
            # Before the state says otherwise; a full disk keeps no run from going on.
            with contextlib.suppress(OSError):
                tell_attempt(folder, read_state(folder))
        write_state(
            folder,
            status="starting",
            message=resuming(folder) if resume else "starting",
            **(standing(folder) if resume else {}),
            error="",
            exit_code=None,
            repeats=False,
            # Silence is counted from the trainer's first sign of life, not from the last one of the attempt before.
            heartbeat_monotonic=0.0,
            attempt=attempt,
            **process_identity(),
        )
    except BaseException:
        # Kept, it would make the run look alive, and impossible to resume, for as long as this process lives.
        os.close(lock)
        raise
    return lock


def _lock_of_attempt(folder: RunFolder, attempt: int) -> int:
    deadline = time.monotonic() + RESUME_PATIENCE_SECONDS
    while True:
        try:
            return take_lock(folder, 0.2)
        except RunError:
            # Whoever resumes it beside us says so in the state, long before our patience ends.
            _check_attempt(folder, attempt)
            if time.monotonic() >= deadline:
                raise


def _check_attempt(folder: RunFolder, attempt: int) -> None:
    # Of several who resume a run at once the first does it: the others must not train it once more after its end.
    present = read_state(folder).attempt
    if present >= attempt > 1:
        raise RunError(f"run '{folder.id}' was resumed by somebody else a moment ago (attempt {present})")


def module_command(module: str, *arguments: str) -> list[str]:
    """argv that runs a module of this package in this Python; ``-P``: nothing in the working folder shadows one."""
    return [sys.executable, "-P", "-m", module, *arguments]


def child_environment(**extra: str) -> dict[str, str]:
    """The environment of a supervisor, trainer or report started by this process; what the user has set stands."""
    environment = {**os.environ, **extra}
    environment |= heap_settings(environment)
    # Set by Jupyter for its kernels; our processes draw to files.
    if environment.get("MPLBACKEND", "").startswith("module://matplotlib_inline"):
        del environment["MPLBACKEND"]
    home = str(Path(__file__).parents[2])
    if Path(home).name not in ("site-packages", "dist-packages"):
        # A source tree that is not installed is importable here only through sys.path.
        known = environment.get("PYTHONPATH", "")
        if home not in known.split(os.pathsep):
            environment["PYTHONPATH"] = home + (os.pathsep + known if known else "")
    return environment
