"""A process held ready that has loaded torch and forks trainers: a run starts in a tenth of a second (Linux).

Nothing depends on it. :func:`hold` starts one and returns; :func:`hand_over` gives it runs, those that wait once their
turn has come. Where none is held, it was started under other surroundings, or does not answer, a run starts as ever.
Whatever the holder starts (a kernel, a command, the driver of a race) finds it by the environment, and uses it, too. It
holds no lock and no file of a run, and ends with its holder, or when it has waited too long.

``python -m workbench.launchers.fork_server LISTENER LIFELINE SECONDS [ROOM]`` is that process: descriptors of the
socket at which it is asked and of one that closes with whoever holds it, and the time before torch is loaded. It has
one thread and asks for no GPU, or its forks could not train.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import gc
import hashlib
import importlib
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, NoReturn

import psutil

from workbench.base.loading import COMPILER, load
from workbench.launchers.processes import child_environment, module_command
from workbench.store.state import die_with_parent

SUPERVISOR, TRAINER = "workbench.launchers.supervisor", "workbench.training.worker"
VARIABLE = "WORKBENCH_HOLD"
"""``off``: none is held, and none that is held is used."""
FOLDER_VARIABLE = "WORKBENCH_HELD"
"""Folder with a socket for every kind of surroundings that one is held for."""
LEAST_BYTES = 2 << 30
"""Free memory below which none is held: it takes some 400 MB."""
AGAIN_SECONDS = 20.0
"""Before another takes the place of one that was no use: until then the run that starts has the cores."""
LOADING_SECONDS = 15.0
"""For one that still loads torch: a trainer of its own would begin with that."""
ANSWER_SECONDS = 1.0
"""For one that has nothing else to do."""
LONGEST_SECONDS = 600.0
"""Without a run: some 400 MB are not kept for a notebook that somebody has left."""
READY = b"ready"
"""The first word of whoever has a run; answered with the process that waits for it."""
LATE = (
    "CLICOLOR", "COLUMNS", "CUDA_", "FORCE_COLOR", "GIT_PAGER", "HF_", "HIP_", "IPYTHON", "JPY_", "JUPYTER",
    "LINES", "MPLBACKEND", "NVIDIA_",
    "OLDPWD", "PAGER", "PIP_", "PWD", "PYDEVD_", "PYTEST_", "ROCR_", "SHLVL", "TERM", "WORKBENCH_",
)  # fmt: skip
"""Beginnings of the variables that are read after torch was loaded, or not at all, so that they may differ."""
ROOM = "-" * 500
"""An argument of a process whose forks take other commands: Linux shows as many characters as there were."""
_LIMITS = (resource.RLIMIT_AS, resource.RLIMIT_DATA, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE)
_MESSAGE_BYTES = 1 << 20
# Of the fields that follow the name (proc(5) counts from 1 and calls them 48 and 49).
_START, _END = 45, 46


class _Held(NamedTuple):
    process: subprocess.Popen[bytes]
    lifeline: socket.socket
    path: Path


_held: list[_Held] = []
_asked = threading.Event()
"""Set while this process wants one: where that of a process above it has ended, it then starts its own."""
_one_at_a_time = threading.Lock()


def hold(after_seconds: float = 0.0) -> bool:
    """Have one ready soon, unless this process or one above it has one; returns at once.

    Args:
        after_seconds: before torch is loaded, so that it does not take a core from what starts now.

    Returns:
        True if one was started, which is then the caller's to :func:`release`.
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


def hand_over(arguments: list[str], environment: dict[str, str]) -> psutil.Process | None:
    """Give a run to a supervisor that is forked for it; returns its process, None where a new one is needed.

    Args:
        arguments: of the supervisor. environment: of its process.
    """
    if os.environ.get(VARIABLE) == "off":
        return None
    # Two supervisors of one run do no harm: the second finds the lock taken, or the run ended.
    with contextlib.suppress(OSError, psutil.Error), _connected(_folder() / _surroundings()) as channel:
        channel.send(READY)
        if number := _answer(channel, LOADING_SECONDS):
            supervisor = psutil.Process(int(number))
            channel.send(json.dumps([arguments, environment]).encode())
            return supervisor
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
            module_command("workbench.launchers.fork_server", *map(str, descriptors), str(after_seconds), ROOM),
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
    """Return where sockets are: of a process above this one, or our own.

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
    """Return a digest of what a child takes over when it is started, and cannot change later on."""
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


def main(argv: list[str] | None = None) -> int:
    """Fork until nobody can ask any more, nobody has for long, or the code was edited; returns the exit code."""
    listener_number, lifeline_number, seconds, *_ = argv or sys.argv[1:]
    began = time.time()
    listener, lifeline = (socket.socket(fileno=int(number)) for number in (listener_number, lifeline_number))
    path = Path(listener.getsockname())
    try:
        # Who asks does not wait for the time to pass; nothing is ever sent on a lifeline, that is its end.
        if lifeline not in select.select([listener, lifeline], [], [], float(seconds))[0]:
            _serve(listener, lifeline, began)
    finally:
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            path.parent.rmdir()  # unless another is at work there
    return 0


def _serve(listener: socket.socket, lifeline: socket.socket, began: float) -> None:
    # Loaded with numpy, OpenBLAS starts a thread for each further core; a process with threads cannot be forked here.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    load("numpy")
    del os.environ["OPENBLAS_NUM_THREADS"]
    load(SUPERVISOR, TRAINER, "workbench.training.session", COMPILER)
    # Nobody waits for the supervisors: they are no zombies when they have ended.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    compiles = False
    while _can_fork():
        # Modules are no garbage, and what a collection touches is no longer shared with forks.
        gc.freeze()
        # A run that is there already may need no compiler.
        ready = select.select([listener, lifeline], [], [], LONGEST_SECONDS if compiles else 0.0)[0]
        if lifeline in ready or (compiles and not ready):
            return
        if not ready:
            load("torch._inductor.compile_fx")
            compiles = True
            continue
        with listener.accept()[0] as channel:
            # Whoever only looks if somebody listens says nothing.
            if not (select.select([channel], [], [], ANSWER_SECONDS)[0] and channel.recv(len(READY)) == READY):
                continue
            if stale(began):
                return
            if os.fork() == 0:
                listener.close()
                lifeline.close()
                _leave(functools.partial(_supervise, channel))


def _can_fork() -> bool:
    """Return True if forks of this process could train: it has one thread, and no driver of a GPU."""
    try:
        return len(os.listdir("/proc/self/task")) == 1 and "libcuda.so" not in Path("/proc/self/maps").read_text()
    except OSError:
        return False


def stale(since: float) -> bool:
    """Return True if a file of a loaded module was changed or removed after a moment, in Unix seconds."""
    # Of the module's own: some answer any name, and load what it stands for.
    paths = {getattr(module, "__dict__", {}).get("__file__") for module in list(sys.modules.values())}
    for path in paths:
        try:
            # Others are no files (`torch.ops`).
            if isinstance(path, str) and os.path.isabs(path) and os.stat(path).st_mtime > since:
                return True
        except OSError:
            return True
    return False


def _supervise(channel: socket.socket) -> int:
    """Be the supervisor of the run that comes through a channel; returns the exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    own = _descriptors() - {channel.fileno()}
    with channel:
        channel.send(b"%d" % os.getpid())
        order = channel.recv(_MESSAGE_BYTES)
    if not order:
        return 0
    arguments, environment = json.loads(order)
    os.environ.clear()
    os.environ.update(environment)
    show_command(SUPERVISOR, *arguments)

    def start(arguments: list[str], environment: dict[str, str], descriptors: dict[str, int]) -> _Forked:
        pid = os.fork()
        if pid == 0:
            _leave(lambda: _train(arguments, environment, descriptors, own))
        return _Forked(pid)

    code: int = importlib.import_module(SUPERVISOR).main(arguments, start)
    return code


def _train(arguments: list[str], environment: dict[str, str], descriptors: dict[str, int], own: set[int]) -> int:
    began = time.monotonic()
    os.setpgid(0, 0)
    die_with_parent()
    # The supervisor's answer to it.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Tickets and locks above all: they are held as long as anybody has them open.
    for number in _descriptors() - own - set(descriptors.values()):
        with contextlib.suppress(OSError):
            os.close(number)
    os.environ.clear()
    os.environ.update(environment)
    os.environ.update({variable: str(number) for variable, number in descriptors.items()})
    show_command(TRAINER, *arguments)
    code: int = importlib.import_module(TRAINER).main(arguments, began)
    return code


def show_command(module: str, *arguments: str) -> None:
    """Have Linux show this process as ``python -P -m module arguments``; elsewhere nothing happens."""
    command = b"\0".join(each.encode("utf-8", "surrogateescape") for each in module_command(module, *arguments))
    with contextlib.suppress(OSError, IndexError, ValueError):
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = int(fields[_START]), int(fields[_END])
        # In place, where the kernel reads it: there is no call for it without a privilege.
        if sys.platform == "linux" and 0 < start < end:
            room = end - start
            ctypes.memmove(start, command[: room - 1].ljust(room, b"\0"), room)


def _descriptors() -> set[int]:
    """Return the open descriptors of this process."""
    listed = [int(name) for name in os.listdir("/proc/self/fd")]
    # One is that of the listing, and the next file that is opened has its number.
    return {number for number in listed if os.path.lexists(f"/proc/self/fd/{number}")}


def _leave(work: Callable[[], int]) -> NoReturn:
    """Do the work of a forked process and end it, without a step back into what its parent does."""
    code = 1
    try:
        code = work()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        # What the interpreter does at its end, as multiprocessing does for its own forks.
        with contextlib.suppress(BaseException):
            threading._shutdown()  # type: ignore[attr-defined]
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


class _Forked:
    """A trainer; see ``Trainer`` of the supervisor."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def kill(self) -> None:
        """End it."""
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Return its exit code, negative after a signal."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


if __name__ == "__main__":
    sys.exit(main())
