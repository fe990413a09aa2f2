"""A process held ready that has loaded torch and forks trainers: a run starts in a tenth of a second (Linux).

Nothing depends on it. :func:`hold` starts one (:mod:`workbench.launchers.template`) and returns;
:func:`hand_over` gives it runs, those that wait once their turn has come. Where none is held, it was started under
other surroundings, or does not answer, a run starts as ever. Whatever the holder starts (a kernel, a command, the
driver of a race) finds it by the environment, and uses it, too. It holds no lock and no file of a run, and ends with
its holder, or when it has waited too long.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import NamedTuple

import psutil

from workbench.launchers.command_line import ROOM
from workbench.launchers.launcher import child_environment, module_command
from workbench.store.order import ANSWER_SECONDS, READY, TAKEN, Order

TEMPLATE = "workbench.launchers.template"
VARIABLE = "WORKBENCH_HOLD"
"""``off``: none is held, and none that is held is used."""
FOLDER_VARIABLE = "WORKBENCH_HELD"
"""Folder with a socket for every kind of surroundings that one is held for."""
LEAST_BYTES = 2 << 30
"""Of free memory, below which none is held: it takes some 400 MB."""
AGAIN_SECONDS = 20.0
"""Before another takes the place of one that was no use: until then the run that starts has the cores."""
LOADING_SECONDS = 15.0
"""For one that still loads torch: a trainer of its own would begin with that."""
LATE = (
    "CLICOLOR", "COLUMNS", "CUDA_", "FORCE_COLOR", "GIT_PAGER", "HF_", "HIP_", "IPYTHON", "JPY_", "JUPYTER",
    "LINES", "MPLBACKEND", "NVIDIA_",
    "OLDPWD", "PAGER", "PIP_", "PWD", "PYDEVD_", "PYTEST_", "ROCR_", "SHLVL", "TERM", "WORKBENCH_",
)  # fmt: skip
"""Beginnings of the variables that are read after torch was loaded, or not at all, so that they may differ."""
_LIMITS = (resource.RLIMIT_AS, resource.RLIMIT_DATA, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE)


class _Held(NamedTuple):
    process: subprocess.Popen[bytes]
    lifeline: socket.socket
    path: Path


_held: list[_Held] = []
_asked = threading.Event()
"""Whether this process wants one: where that of a process above it has ended, it then starts its own."""
_one_at_a_time = threading.Lock()


def hold(after_seconds: float = 0.0) -> bool:
    """Have one ready soon, unless this process or one above it has one; returns at once.

    Args:
        after_seconds: before torch is loaded, so that it does not take a core from what starts now.

    Returns:
        whether one was started, which is then the caller's to :func:`release`.
    """
    wanted = sys.platform == "linux" and os.environ.get(VARIABLE) != "off"
    if not wanted or psutil.virtual_memory().available < LEAST_BYTES:
        return False
    _asked.set()
    # Without it a launch takes seconds longer, and says what is wrong with starting processes.
    with _one_at_a_time, contextlib.suppress(OSError):
        path = _folder(new=True) / _surroundings()
        if _held and _held[0].path == path and _held[0].process.poll() is None:
            return False
        try:
            _connected(path).close()
        except OSError:
            path.unlink(missing_ok=True)
            _release()
            # The folder may have gone with the last one.
            _held.append(_start(_folder(new=True) / path.name, after_seconds))
            return True
    return False


def hand_over(order: Order) -> psutil.Process | None:
    """Give a run to a supervisor that is forked for it; returns its process, None where a new one is needed."""
    if os.environ.get(VARIABLE) == "off":
        return None
    supervisor: psutil.Process | None = None
    try:
        with _connected(_folder() / _surroundings()) as channel:
            channel.send(READY)
            if number := _answer(channel, LOADING_SECONDS):
                supervisor = psutil.Process(int(number))
                order.send(channel)
                if _answer(channel, ANSWER_SECONDS) == TAKEN:
                    return supervisor
    except (OSError, psutil.Error):
        pass
    if supervisor is not None:
        # It may have the order and be too slow to say so: two must never train one run.
        with contextlib.suppress(psutil.Error):
            supervisor.kill()
    if _asked.is_set():
        hold(AGAIN_SECONDS)
    return None


def release() -> None:
    """Let go of what this process holds, if anything: it ends. Runs go on."""
    _asked.clear()
    with _one_at_a_time:
        _release()


def _release() -> None:
    for process, lifeline, path in _held:
        lifeline.close()
        process.send_signal(signal.SIGKILL)
        process.wait()
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
            path.parent.rmdir()
    _held.clear()


def _start(path: Path, after_seconds: float) -> _Held:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        # From now on who asks is served as soon as torch is loaded.
        listener.bind(str(path))
        listener.listen()
        descriptors = [listener.fileno(), theirs.fileno()]
        process = subprocess.Popen(
            module_command(TEMPLATE, *map(str, descriptors), str(after_seconds), ROOM),
            stdin=subprocess.DEVNULL,
            # What it has to say before it has a run is for nobody.
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=child_environment(),
            pass_fds=descriptors,
            start_new_session=True,
        )
    return _Held(process, ours, path)


def _connected(path: Path) -> socket.socket:
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        # Never long: who listens has a queue.
        channel.settimeout(ANSWER_SECONDS)
        channel.connect(str(path))
    except BaseException:
        channel.close()
        raise
    return channel


def _answer(channel: socket.socket, seconds: float) -> bytes:
    # A kernel may have a thousand files open, of which `select` takes none.
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    return channel.recv(32) if poll.poll(1000 * seconds) else b""


def _folder(*, new: bool = False) -> Path:
    """Where sockets are: of a process above this one, or our own.

    Raises:
        OSError: there is none, or it is another user's.
    """
    if new and not os.environ.get(FOLDER_VARIABLE):
        os.environ[FOLDER_VARIABLE] = tempfile.mkdtemp(prefix="workbench-")
    folder = Path(os.environ.get(FOLDER_VARIABLE) or os.devnull)
    if new:
        # Under its old name: processes below look for it there.
        folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.geteuid():
        raise PermissionError(f"{folder} belongs to somebody else")
    return folder


def _surroundings() -> str:
    """What a child takes over from this process when it is started, and cannot change later on, as a digest."""
    environment = {name: value for name, value in child_environment().items() if not name.startswith(LATE)}
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    limits = [resource.getrlimit(each) for each in _LIMITS]
    try:
        # A run must not leave the memory and the time that were given to whoever launches it.
        group = Path("/proc/self/cgroup").read_text()
    except OSError:
        group = ""
    environment.pop("_", None)  # a shell's, of the command that it starts
    everything = (sys.executable, sorted(environment.items()), cores, os.getpriority(os.PRIO_PROCESS, 0), limits, group)
    return hashlib.sha256(repr(everything).encode()).hexdigest()[:16]
