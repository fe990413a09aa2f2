"""A process that has loaded what trainers load, and forks a supervisor and its trainer for every run that it is given.

``python -m workbench.launchers.template LISTENER LIFELINE SECONDS [ROOM]``: descriptors of the socket at which it
is asked and of one that closes with whoever holds it (:mod:`workbench.launchers.held`), and the time before torch
is loaded. It has one thread and asks for no GPU, or its forks could not train.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import os
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from workbench.base.loading import COMPILER, load
from workbench.launchers import supervisor
from workbench.launchers.command_line import show_command
from workbench.store.order import ANSWER_SECONDS, READY, TAKEN, Order, stale
from workbench.store.state import die_with_parent

LONGEST_SECONDS = 600.0
"""Without a run: some 400 MB are not kept for a notebook that somebody has left."""


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
    load(supervisor.TRAINER, "workbench.training.session", COMPILER)
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
            # Whoever only looks whether somebody listens says nothing.
            if not (select.select([channel], [], [], ANSWER_SECONDS)[0] and channel.recv(len(READY)) == READY):
                continue
            if stale(began):
                return
            if os.fork() == 0:
                listener.close()
                lifeline.close()
                _leave(functools.partial(_supervise, channel))


def _can_fork() -> bool:
    """Whether forks of this process could train: it has one thread, and no driver of a GPU."""
    try:
        return len(os.listdir("/proc/self/task")) == 1 and "libcuda.so" not in Path("/proc/self/maps").read_text()
    except OSError:
        return False


def _supervise(channel: socket.socket) -> int:
    """Be the supervisor of the run that comes through a channel; returns the exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    own = _descriptors() - {channel.fileno()}
    with channel:
        channel.send(b"%d" % os.getpid())
        order = Order.receive(channel)
        if order is None:
            return 0
        channel.send(TAKEN)
    order.adopt()
    show_command(supervisor.__name__, *order.arguments)

    def start(arguments: list[str], environment: dict[str, str], descriptors: dict[str, int]) -> _Forked:
        pid = os.fork()
        if pid == 0:
            _leave(lambda: _train(arguments, environment, descriptors, own))
        return _Forked(pid)

    return supervisor.main(order.arguments, start)


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
    show_command(supervisor.TRAINER, *arguments)
    code: int = importlib.import_module(supervisor.TRAINER).main(arguments, began)
    return code


def _descriptors() -> set[int]:
    """Open ones of this process."""
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
    """A trainer; see :class:`supervisor.Trainer`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def kill(self) -> None:
        """End it."""
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Its exit code, negative after a signal."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


if __name__ == "__main__":
    sys.exit(main())
