"""The state of a run, ``state.json``, and the lock that says if anybody still works on it.

A pid proves nothing (it is reused, and a zombie still answers), so *alive* means: the flock on :attr:`RunFolder.lock`,
which supervisor and trainer hold, is taken. Before a supervisor begins, and where locks do not reach, the launcher says
what is true. Standard library; psutil on first use.
"""

from __future__ import annotations

import fcntl
import functools
import math
import os
import pkgutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from workbench.base.errors import RunError
from workbench.base.files import file_locked
from workbench.store.folder import RunFolder, read_object, write_json
from workbench.store.full_disk import disk_full, write_into_reserve

STATUSES = ("queued", "starting", "running", "paused", "stopping", "finished", "stopped", "failed", "lost")
ENDED_WELL = ("finished", "stopped")
FINAL = (*ENDED_WELL, "failed", "lost")
STALLED = "stalled"
"""Never written: what :func:`actual_status` calls a run that is alive and has been silent for too long."""
# A heartbeat comes every second; a slow disk, or a library that keeps Python from running, is no silence yet.
STALLED_SECONDS = 15.0
PREPARING = "preparing: "
"""With this begins what a run says while it reads, counts or measures something for the first time."""
LAUNCHER = "workbench.launchers.launcher:alive"
"""Asked, never imported: launchers stand above."""
ENDED = "workbench.launchers.launcher:ended"
"""Asked likewise."""
LOCK_VARIABLE = "WORKBENCH_LOCK_DESCRIPTOR"
LEFT_TO_SUPERVISOR = "WORKBENCH_LEFT_TO_SUPERVISOR"
"""Environment variable of trainers in a cluster's job, to all processes of which signals are sent at once."""
# Room for any error text; a huge file in its place must not fill the memory of whoever watches.
_READ_LIMIT_BYTES = 1 << 20
_threads = threading.Lock()


@dataclass(frozen=True)
class RunState:
    """One reading of ``state.json``; keys it does not know are ignored, damaged values read as the defaults.

    Attributes:
        status: one of :data:`STATUSES`, as last written (see :func:`actual_status` for what is true now, which
            :attr:`Run.state <workbench.client.run.Run.state>` has).
        pid, pid_started, boot_id, host: who wrote it (process start in Unix seconds); hints for people.
        heartbeat: Unix time of the last word from the trainer.
        heartbeat_monotonic: the same moment in seconds since the boot, 0 before the first one.
        step, tokens, seconds: optimizer steps, real tokens, seconds of training.
        progress: spent share of the budget, 0..1. loss, heldout_loss: nats per labelled token.
        tokens_before, seconds_before: of them, those of the run that a fork goes on from; 0 for any other run.
        tokens_per_second: over its last ten seconds of training; once the run has ended, :func:`mean_speed` of its own.
        message: what it is doing now. error: why it failed, in full.
        exit_code: of the trainer, None before it ended. attempt: 1, and one more for every resume after an end.
        device: in words. started: Unix time at which it began to train, 0 before that and in runs of earlier versions.
        resume_step: of the checkpoint to resume from, where that is not the newest.
        repeats: it failed in a way that a resume only repeats.
        afar: URL of the run that this is a copy of (:mod:`workbench.store.mirror`); empty for the run itself. Of a copy
            ``heartbeat`` is the time here at which there was news.
    """

    status: str = "lost"
    pid: int = 0
    pid_started: float = 0.0
    boot_id: str = ""
    host: str = ""
    heartbeat: float = 0.0
    heartbeat_monotonic: float = 0.0
    step: int = 0
    progress: float = 0.0
    tokens: int = 0
    seconds: float = 0.0
    tokens_before: int = 0
    seconds_before: float = 0.0
    loss: float | None = None
    heldout_loss: float | None = None
    tokens_per_second: float | None = None
    message: str = ""
    error: str = ""
    exit_code: int | None = None
    attempt: int = 1
    device: str = ""
    started: float = 0.0
    resume_step: int | None = None
    repeats: bool = False
    afar: str = ""

    @property
    def final(self) -> bool:
        """True when the written status is one that no process will change any more."""
        return self.status in FINAL

    @property
    def elsewhere(self) -> bool:
        """True where another machine held the run last: its processes, and perhaps its locks, are not seen here."""
        if self.afar:
            return True
        # A container that was made anew has another name, on the same machine.
        return self.host not in ("", socket.gethostname()) and self.boot_id != boot_id()


_READERS: dict[str, Callable[[Any], Any]] = {"int": int, "bool": bool, "float": float, "str": str}


def mean_speed(tokens: float, seconds: float) -> float:
    """Return the tokens per second over all of a run's own training, without compilation, pauses and evaluations.

    Args:
        tokens, seconds: of training; rounded as a state holds them, so that a result and a state say the same.
    """
    return tokens / max(round(seconds, 4), 1e-4)


def read_state(folder: RunFolder) -> RunState:
    """Return the state as last written; ``lost`` with a message when the file is missing or damaged."""
    return _parse(read_object(folder.state, limit=_READ_LIMIT_BYTES, follow=False))


def write_state(folder: RunFolder, *, durable: bool = True, **changes: Any) -> RunState:
    """Merge ``changes`` into ``state.json`` (read, merge, replace whole) and return the result.

    Args:
        durable: fsync before the rename; leave out only for heartbeats.

    Raises:
        OSError: the folder is gone, or the disk is full and :attr:`RunFolder.reserve` does not help; the old state is
            untouched.
    """
    legal = {field.name for field in fields(RunState)}
    assert changes.keys() <= legal, f"no such state: {sorted(changes.keys() - legal)}"
    assert changes.get("status", "lost") in STATUSES, changes["status"]
    # The trainer's heartbeat and the supervisor's last word may come together: one must not undo the other.
    with _threads, exclusive(folder.path):
        present = read_object(folder.state, limit=_READ_LIMIT_BYTES, follow=False)
        merged = present | {key: _plain(value) for key, value in changes.items()}
        # The first write names every key, so that other programs need no table of our defaults.
        if "status" not in merged:
            merged = {**asdict(RunState(status="queued")), **merged}
        try:
            write_json(folder.state, merged, durable=durable)
        except OSError as error:
            if not disk_full(error) or not folder.reserve.exists():
                raise
            write_into_reserve(folder, merged)
    return _parse(merged)


def actual_status(folder: RunFolder, state: RunState | None = None) -> str:
    """Return the status that is true now.

    A run that should be alive, whose lock is free and of which its launcher knows nothing is ``lost``; one that is
    alive and has given no sign of life for :data:`STALLED_SECONDS` is ``stalled`` (suspended, swapping, or its disk
    hangs) until the next one.

    Args:
        state: a reading of it, to save a second one.
    """
    state = state or read_state(folder)
    status = state.status
    # After a reboot a run may wait without a process; its place in the queue is kept.
    if status in FINAL:
        return status
    if state.afar:
        # Nobody here can know that a run elsewhere is lost: there is no news of it.
        return STALLED if silent_seconds(state) > STALLED_SECONDS else status
    if status == "queued":
        return pkgutil.resolve_name(ENDED)(folder) or status
    if lock_held(folder) or launcher_says(folder):
        return STALLED if silent_seconds(state) > STALLED_SECONDS else status
    # It may have ended between the reading and the test of the lock.
    status = read_state(folder).status
    return status if status in FINAL else pkgutil.resolve_name(ENDED)(folder) or "lost"


def silent_seconds(state: RunState) -> float:
    """Return the seconds since the trainer's last sign of life; 0 where nobody can know."""
    if state.afar:
        return 0.0 if state.final else max(0.0, time.time() - state.heartbeat)
    # Not by the time of day, which may be set.
    if state.final or not state.heartbeat_monotonic or state.boot_id != boot_id():
        return 0.0
    return max(0.0, time.monotonic() - state.heartbeat_monotonic)


def launcher_says(folder: RunFolder) -> bool:
    """Return True if the launcher of a run with a free lock says that it is alive, as before its supervisor begins."""
    return pkgutil.resolve_name(LAUNCHER)(folder) is True


def lock_held(folder: RunFolder) -> bool:
    """Return True if a supervisor or trainer of this run is alive."""
    return file_locked(folder.lock)


def take_lock(folder: RunFolder, patience_seconds: float = 1.0) -> int:
    """Become the one process that may train this run; returns the descriptor that holds the lock.

    Args:
        patience_seconds: readers hold the lock for microseconds while they test it; keep trying that long.

    Raises:
        RunError: another supervisor or trainer of this run is alive.
        OSError: the folder cannot be written to, or its file system knows no locks.
    """
    # Close-on-exec: the lock is passed on by name (`pass_fds`) and never by accident to some tool that outlives the
    # run.
    descriptor = os.open(folder.lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    deadline = time.monotonic() + patience_seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(descriptor)
                raise RunError(
                    f"run '{folder.id}' is already being trained by another process; stop it first "
                    f"(`workbench stop {folder.id}`), or launch the recipe as a new run"
                ) from None
            time.sleep(0.02)
        except OSError:
            os.close(descriptor)
            raise


def inherited_lock(folder: RunFolder) -> int | None:
    """Return the lock descriptor that the parent passed on, if it is this run's; close-on-exec from here on."""
    # Removed, since in a grandchild the same number would stand for another file.
    text = os.environ.pop(LOCK_VARIABLE, "")
    if not text.isdigit():
        return None
    descriptor = int(text)
    try:
        # A number proves nothing: whoever started us may have set the variable and passed no descriptor.
        if not os.path.samestat(os.fstat(descriptor), os.stat(folder.lock, follow_symlinks=False)):
            return None
    except OSError:
        return None
    os.set_inheritable(descriptor, False)
    return descriptor


def keep_lock(folder: RunFolder) -> int | None:
    """For a trainer, once at its start: hold the parent's lock if it passed one, and share it with no child.

    Children let go of the lock and die with the trainer: one that outlived it would keep the run "alive" for ever.
    """
    descriptor = inherited_lock(folder)
    if descriptor is None:
        return None

    # Lists, because the handlers below change what they hold.
    held, forking = [descriptor], [os.getpid()]

    def let_go() -> None:
        while held:
            os.close(held.pop())
        die_with_parent()
        if os.getppid() != forking[0]:
            # Not sys.exit: a fork must not run its parent's exit handlers (a progress bar, a profile, a test runner).
            os._exit(1)

    os.register_at_fork(before=lambda: forking.__setitem__(0, os.getpid()), after_in_child=let_go)
    return descriptor


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies (Linux; elsewhere nothing happens)."""
    prctl = _prctl()
    if prctl is not None:
        prctl(1, signal.SIGKILL)  # 1 = PR_SET_PDEATHSIG


@functools.cache
def _prctl() -> Callable[..., int] | None:
    import ctypes

    return getattr(ctypes.CDLL(None), "prctl", None)


def process_identity() -> dict[str, Any]:
    """Return ``pid, pid_started, boot_id, host`` of this process, for :func:`write_state`."""
    import psutil

    return {
        "pid": os.getpid(),
        "pid_started": psutil.Process().create_time(),
        "boot_id": boot_id(),
        "host": socket.gethostname(),
    }


@functools.cache
def boot_id() -> str:
    """Return the name of this boot of this machine: pids of another boot mean nothing."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        import psutil

        return f"{psutil.boot_time():.0f}"


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Only one process merges at a time; the lock is on the folder itself, so it leaves no file behind."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Waiting is safe: a merge takes milliseconds, and the kernel unlocks for whoever dies in one.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # by name: see `locked`
        os.close(descriptor)


def _parse(raw: dict[str, Any]) -> RunState:
    known: dict[str, Any] = {}
    for field in fields(RunState):
        if raw.get(field.name) is None:
            continue
        try:
            # Value by value, so that one damaged number hides no other: such a run can still be stopped.
            known[field.name] = _READERS[str(field.type).partition(" ")[0]](raw[field.name])
        except (TypeError, ValueError, OverflowError):
            continue
    if known.get("status") not in STATUSES:
        known |= {"status": "lost", "message": "state.json is missing or damaged"}
    # Here, for all who show it: the last interval of an ended run would contradict its result.
    elif known["status"] in FINAL and known.get("seconds"):
        tokens, seconds = (known.get(name, 0) - known.get(f"{name}_before", 0) for name in ("tokens", "seconds"))
        known["tokens_per_second"] = mean_speed(tokens, seconds) if seconds > 0 else None
    return RunState(**known)


def _plain(value: Any) -> Any:
    """JSON has no word for NaN and infinities; they travel as strings, and ``float`` reads them back."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
