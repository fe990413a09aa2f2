"""The trainers of one run: started together, watched, ended together. Rank 0 is the run's session."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from workbench.launchers.fork_server import TRAINER
from workbench.launchers.nodes import Nodes
from workbench.launchers.processes import module_command
from workbench.store.state import LOCK_VARIABLE, die_with_parent

MEETING = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""Variables by which several trainers find each other, as torchrun names them."""
GRACE_SECONDS = 5.0
"""For trainers that see by themselves that another has ended."""
_POLL_SECONDS = 0.1


class Trainer(Protocol):
    """A child of this process, as :class:`subprocess.Popen` is one."""

    pid: int

    def kill(self) -> None:
        """End it."""

    def wait(self) -> int:
        """Return its exit code, negative after a signal."""


class Starter(Protocol):
    """Brings a trainer to life as a child of this process, which dies with it, in a process group of its own."""

    def __call__(self, arguments: list[str], environment: dict[str, str], descriptors: dict[str, int]) -> Trainer:
        """Start it.

        Args:
            arguments: of :data:`TRAINER`. environment: of the process.
            descriptors: that it inherits, by the environment variable that tells it the number.

        Raises:
            OSError: the process could not be started.
        """


class End(NamedTuple):
    """The end of a run's trainers.

    Attributes:
        code: of rank 0, negative after a signal.
        abandoned: they were ended because the run is.
        failed: the first other rank that failed, and its code; None where none did.
    """

    code: int
    abandoned: bool
    failed: tuple[int, int] | None


def start_trainer(arguments: list[str], environment: dict[str, str], descriptors: dict[str, int]) -> Trainer:
    """Start a new process; see :class:`Starter`."""
    return subprocess.Popen(
        module_command(TRAINER, *arguments),
        stdin=subprocess.DEVNULL,
        env=environment | {variable: str(number) for variable, number in descriptors.items()},
        pass_fds=list(descriptors.values()),
        process_group=0,
        # Safe here: this process has one thread.
        preexec_fn=_as_trainer,
    )


def _as_trainer() -> None:
    die_with_parent()
    # A cluster sends it to all processes of a job.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)


def start_all(
    start: Starter, arguments: list[str], environment: Mapping[str, str], lock: int, nodes: Nodes
) -> list[Trainer]:
    """Start the trainers of a run on this node, its first, by rank; the first alone keeps the run's lock.

    Args:
        arguments: of :data:`TRAINER`. environment: of each.
        lock: descriptor of the run's lock.
        nodes: of the run; the others are told to start theirs.

    Raises:
        OSError: one of them could not be started; none is left.
    """
    with socket.socket() as free:
        free.bind(("", 0))
        master = nodes.master_address(), free.getsockname()[1]
    # Else gloo asks for the address of the host's name, which a machine without a network may not have.
    interface = nodes.interface() or ("lo" if sys.platform == "linux" else "")
    here = range(nodes.processes)
    trainers: list[Trainer] = []
    try:
        for rank, place in zip(here, places(environment, here, nodes.size, master, interface), strict=True):
            trainers.append(start(arguments, place, {} if rank else {LOCK_VARIABLE: lock}))
    except OSError:
        for each in trainers:
            end_trainer(each)
        raise
    nodes.start(master)
    return trainers


def places(
    environment: Mapping[str, str], ranks: Iterable[int], size: int, master: tuple[str, int], interface: str
) -> list[dict[str, str]]:
    """Return the environments of the trainers of one node.

    Args:
        environment: what all of them have.
        ranks: on this node. size: trainers of the run.
        master: address and port at which they meet. interface: of the network between them; empty leaves the choice.
    """
    # Of a job that this process may be a part of itself.
    own = {name: value for name, value in environment.items() if name not in MEETING}
    if size == 1:
        return [own]
    # What the user has set stands.
    names = ("GLOO_SOCKET_IFNAME",) if interface == "lo" else ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
    own = {name: interface for name in names if interface} | own
    here = list(ranks)
    return [
        own | dict(zip(MEETING, map(str, (rank, size, local, len(here), *master)), strict=True))
        for local, rank in enumerate(here)
    ]


def wait_for_all(trainers: list[Trainer], abandoned: Callable[[], bool]) -> End:
    """Wait for the end of all trainers of a run, and end what they left.

    Args:
        trainers: by rank.
        abandoned: called again and again; True ends them.
    """
    first, *others = trainers
    left, failed_at = False, 0.0
    while exit_code(first) is None:
        if abandoned():
            left = True
            first.kill()
        if _failed(others):
            failed_at = failed_at or time.monotonic()
            # It waits for a process that will not come, perhaps while it is paused.
            if time.monotonic() > failed_at + GRACE_SECONDS:
                first.kill()
        time.sleep(_POLL_SECONDS)
    deadline = time.monotonic() + (0.0 if left else GRACE_SECONDS)
    while any(exit_code(each) is None for each in others) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    failed = _failed(others)
    code, *_ = [end_trainer(each) for each in trainers]
    return End(code, left, failed)


def _failed(others: list[Trainer]) -> tuple[int, int] | None:
    codes = ((rank, exit_code(each)) for rank, each in enumerate(others, 1))
    return next(((rank, code) for rank, code in codes if code), None)


def exit_code(trainer: Trainer) -> int | None:
    """Return the exit code of a trainer, which stays a zombie: its pid is that of its process group."""
    found = os.waitid(os.P_PID, trainer.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def end_trainer(trainer: Trainer) -> int:
    """Kill what is left of a trainer and its workers; returns its exit code."""
    # Data and compile workers share the trainer's process group; its pid is not free before the trainer is reaped.
    with contextlib.suppress(OSError):
        os.killpg(trainer.pid, signal.SIGKILL)
    return trainer.wait()


def why_ended(code: int, out_of_memory: bool, saved: bool, who: str = "the trainer") -> str:
    """Return why a trainer ended without saying so in the run's state, and what helps.

    Args:
        saved: it left a checkpoint, which can be forked.
        who: ended.
    """
    if code >= 0:
        return f"{who} ended with exit code {code} before it could say why."
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "unknown"
    killed = f"{who} was killed (signal {-code}, {name})."
    if code != -signal.SIGKILL:
        return killed
    advice = "lower data.batch_size, or set execution.micro_batch_size, and launch that anew"
    advice += ", or fork with it." if saved else "."
    if out_of_memory:
        return f"{killed} The kernel's count of out-of-memory kills rose meanwhile: memory ran out; {advice}"
    return f"{killed} On Linux that is most often the out-of-memory killer; if so, {advice}"
