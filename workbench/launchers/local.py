"""``on="local"``: a detached process of this machine, in its own session."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import psutil

from workbench.launchers import held
from workbench.launchers.launcher import Launcher, child_environment, module_command
from workbench.store.folder import RunFolder
from workbench.store.order import Order
from workbench.store.state import read_state


class LocalLauncher(Launcher):
    """A supervisor in its own session: survives a kernel's interrupt, restart and end, papermill's, the terminal's."""

    name: ClassVar[str] = "local"

    def start(self, folder: RunFolder, descriptors: Mapping[str, int], working_folder: Path, resume: bool) -> int:
        """See :meth:`Launcher.start`."""
        return start_supervisor(folder, descriptors, working_folder, ["--resume"] if resume else [], own_session=True)


def start_supervisor(
    folder: RunFolder,
    descriptors: Mapping[str, int],
    working_folder: Path,
    options: list[str],
    *,
    own_session: bool,
    python: str = "",
    settings: Mapping[str, str] | None = None,
) -> int:
    """Start ``workbench.launchers.supervisor`` with the run's lock and turn; returns its pid.

    Args:
        folder: the run's folder. descriptors: see :meth:`Launcher.start`. working_folder: where recipe paths start.
        own_session: leave the caller's session, else only its process group (so that Ctrl-C is the caller's to read);
            what is forked from a process that is held ready leaves both.
        python: to start it with; empty: this one. settings: environment variables beside this process's.

    Raises:
        OSError: the log cannot be opened or the process not started.
    """
    arguments, environment = [str(folder.path), *options], child_environment(**settings or {})
    command = module_command("workbench.launchers.supervisor", *arguments)
    # What is held ready has loaded torch; one that waits for its turn, perhaps for hours, must not keep that in memory.
    here_and_now = not python and read_state(folder).status != "queued"
    # Appended to: what earlier attempts said stays, and supervisor and trainer never overwrite each other.
    with folder.log.open("ab") as log:
        order = Order(arguments, str(working_folder), environment, log.fileno(), dict(descriptors))
        if here_and_now and (ready := held.hand_over(order)):
            return _kept(ready)
        child = subprocess.Popen(
            [python or command[0], *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=working_folder,
            env=environment | {variable: str(number) for variable, number in descriptors.items()},
            # A flock belongs to the open file, not to a process: inherited, it is held without a gap.
            pass_fds=list(descriptors.values()),
            start_new_session=own_session,
            # A terminal sends Ctrl-C to its whole foreground group; the run is to get a request instead, and keep a
            # checkpoint.
            process_group=None if own_session else 0,
        )
    return _kept(child)


def _kept(supervisor: subprocess.Popen[bytes] | psutil.Process) -> int:
    """Its pid; so that a long-lived kernel reaps its supervisors when they end, instead of collecting zombies."""
    _supervisors[:] = [known for known in _supervisors if _lives(known)] + [supervisor]
    return supervisor.pid


def _lives(supervisor: subprocess.Popen[bytes] | psutil.Process) -> bool:
    return supervisor.is_running() if isinstance(supervisor, psutil.Process) else supervisor.poll() is None


def wait_for_supervisors(timeout: float) -> bool:
    """Wait until every supervisor that this process started has ended (its report included); False if not in time."""
    deadline = time.monotonic() + timeout
    try:
        for each in _supervisors:
            each.wait(max(0.0, deadline - time.monotonic()))
    except (subprocess.TimeoutExpired, psutil.TimeoutExpired):
        return False
    return True


_supervisors: list[subprocess.Popen[bytes] | psutil.Process] = []
