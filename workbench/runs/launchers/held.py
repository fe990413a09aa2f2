"""A supervisor and a trainer held ready: torch is loaded before there is a run for them.

Nothing depends on it. :func:`hold` starts the two and returns; :func:`hand_over` gives them a run, once. Where nothing
is held, where it was started under other surroundings, or does not answer at once, a run starts as ever. They hold no
lock and no file of a run until then, and end with the process that started them, or when they have waited too long.
"""

from __future__ import annotations

import os
import resource
import select
import socket
import subprocess
import sys
import threading
from typing import Any, NamedTuple

import psutil

from workbench.runs.launchers.launcher import child_environment, module_command
from workbench.runs.order import READY, TAKEN, Order

SUPERVISOR = "workbench.runs.launchers.waiting"
VARIABLE = "WORKBENCH_HOLD"
"""``off``: none is held."""
LEAST_BYTES = 2 << 30
"""Of free memory, below which none is held: the two take some 400 MB."""
AGAIN_SECONDS = 20.0
"""Between a launch and the loading of torch for the next one: until then the run that starts has the cores."""
ANSWER_SECONDS = 1.0
"""For the supervisor to take a run; it does nothing else."""
LATE = ("CUDA_", "HF_", "HIP_", "NVIDIA_", "ROCR_", "WORKBENCH_")
"""Beginnings of the variables that are read after torch was loaded, so that they may change until a launch."""
_LIMITS = (resource.RLIMIT_AS, resource.RLIMIT_DATA, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE)


class _Held(NamedTuple):
    process: subprocess.Popen[bytes]
    channel: socket.socket
    surroundings: Any


_held: list[_Held] = []
_one_at_a_time = threading.Lock()


def hold(after_seconds: float = 0.0) -> None:
    """Have a supervisor and a trainer ready soon, and others once these have a run, unless that is so; returns at once.

    Args:
        after_seconds: before torch is loaded, so that it does not take a core from what starts now.
    """
    if os.environ.get(VARIABLE) == "off" or psutil.virtual_memory().available < LEAST_BYTES:
        return
    with _one_at_a_time:
        if _held and _held[0].process.poll() is None:
            return
        _held.clear()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            process = subprocess.Popen(
                module_command(SUPERVISOR, str(theirs.fileno()), str(after_seconds)),
                stdin=subprocess.DEVNULL,
                # What it has to say before it has a run is for nobody.
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=child_environment(),
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        # Without it a launch takes seconds longer, and says what is wrong with starting processes.
        except OSError:
            ours.close()
            return
        finally:
            theirs.close()
        _held.append(_Held(process, ours, _surroundings()))


def hand_over(order: Order) -> subprocess.Popen[bytes] | None:
    """Give a run to the supervisor that is held; returns its process, None where a new one is needed."""
    with _one_at_a_time:
        # Before its first word it has only begun: of two launches in a row the second need not wait for it.
        if not _held or not select.select([_held[0].channel], [], [], 0.0)[0]:
            return None
        # Taken or not, it is there for no second run.
        process, channel, surroundings = _held.pop()
    with channel:
        taken = surroundings == _surroundings() and _taken(order, channel)
    if not taken:
        # It may have the order and be too slow to say so: two must never train one run.
        _end(process)
    hold(AGAIN_SECONDS)
    return process if taken else None


def release() -> None:
    """Let go of what is held, if anything is: it ends."""
    with _one_at_a_time:
        for process, channel, *_ in _held:
            channel.close()
            _end(process)
        _held.clear()


def _end(process: subprocess.Popen[bytes]) -> None:
    # Its trainer dies with it.
    process.kill()
    process.wait()


def _taken(order: Order, channel: socket.socket) -> bool:
    try:
        if channel.recv(len(READY)) != READY:
            return False
        order.send(channel)
        return bool(select.select([channel], [], [], ANSWER_SECONDS)[0]) and channel.recv(len(TAKEN)) == TAKEN
    except OSError:
        return False


def _surroundings() -> Any:
    """What a child takes over from this process when it is started, and cannot change later on."""
    environment = {name: value for name, value in child_environment().items() if not name.startswith(LATE)}
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    limits = [resource.getrlimit(each) for each in _LIMITS]
    return os.getpid(), sys.executable, environment, cores, os.getpriority(os.PRIO_PROCESS, 0), limits
