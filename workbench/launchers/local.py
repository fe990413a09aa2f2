"""``on="local"``: a detached process of this machine. ``on="inline"``: one that ends with its launcher."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any, ClassVar, Literal

import psutil
from pydantic import Field

from workbench.base.errors import RunError
from workbench.base.text import many
from workbench.launchers import fork_server
from workbench.launchers.launched import launch_environment_of, working_folder
from workbench.launchers.launcher import Handle, Launcher
from workbench.launchers.processes import child_environment, module_command
from workbench.launchers.queue.outlook import notice
from workbench.launchers.queue.settings import LARGEST_PRIORITY
from workbench.launchers.queue.turn import give_up, mark_waiting, reserve
from workbench.store.folder import RunFolder
from workbench.store.state import boot_id, read_state

SUPERVISOR = "workbench.launchers.supervisor"


class Local(Launcher):
    """A supervisor in its own session: survives a kernel's interrupt, restart and end, papermill's, the terminal's."""

    kind: Literal["local", "inline"] = "local"
    once: ClassVar[tuple[str, ...]] = ("wait", "priority")
    queues: ClassVar[bool] = True
    processes: int = Field(1, ge=1, description="that train one run together, on CPUs")
    oversubscribe: bool = Field(False, description="more processes than cores, which take turns on them")
    wait: bool = Field(True, description="wait for a turn on a busy machine; else it starts at once")
    priority: int = Field(
        0, ge=-LARGEST_PRIORITY, le=LARGEST_PRIORITY, description="among runs that wait; higher goes first"
    )

    def check(self, recipe: Any) -> None:
        """See :meth:`Launcher.check`."""
        recipe.execution.process()
        recipe.check_here()
        if self.processes > 1:
            recipe.check_together(self.processes)
            threads, cores = recipe.execution.threads or 1, os.cpu_count() or 1
            if self.processes * threads > cores and not self.oversubscribe:
                raise RunError(
                    f"processes: {self.processes} with {many(threads, 'thread')} each, and this machine has "
                    f"{many(cores, 'core')}; use 1..{max(1, cores // threads)}, fewer threads each, or oversubscribe "
                    "(--oversubscribe), which has them take turns"
                )

    def submit(self, folder: RunFolder, resume: bool) -> Handle:
        """See :meth:`Launcher.submit`. The run enters the queue here, so that runs keep the order of their launches."""
        ticket, problem = reserve(folder, wait=self.wait, priority=self.priority)
        try:
            mark_waiting(folder, ticket)
            process = self._start(folder, resume)
        except OSError:
            give_up(ticket)
            raise
        # So that a long-lived kernel reaps its supervisors when they end, instead of collecting zombies.
        _supervisors[:] = [known for known in _supervisors if _lives(known)] + [process]
        started = 0.0
        with suppress(psutil.Error):
            started = psutil.Process(process.pid).create_time()
        return {"pid": process.pid, "started": started, "boot": boot_id(), "problem": problem}

    def alive(self, handle: Handle) -> bool | None:
        """See :meth:`Launcher.alive`."""
        return None if handle.get("boot") != boot_id() else process_of(handle) is not None

    def cancel(self, handle: Handle) -> None:
        """See :meth:`Launcher.cancel`."""
        if handle.get("boot") == boot_id() and (process := process_of(handle)) is not None:
            with suppress(psutil.Error):
                process.terminate()

    def notice(self, folder: RunFolder, handle: Handle) -> str:
        """See :meth:`Launcher.notice`."""
        return notice(folder, running=read_state(folder).status != "queued", problem=str(handle.get("problem", "")))

    def _options(self, resume: bool) -> list[str]:
        return ["--resume"] if resume else []

    def _start(self, folder: RunFolder, resume: bool) -> subprocess.Popen[bytes] | psutil.Process:
        python, settings = launch_environment_of(folder)
        command = module_command(SUPERVISOR, str(folder.path), *self._options(resume))
        environment = child_environment(**settings)
        # The fork server has loaded torch; a run that waits, perhaps for hours, must not keep that in memory.
        same = python == sys.executable and all(os.environ.get(name) == text for name, text in settings.items())
        if same and read_state(folder).status != "queued":
            forked = fork_server.hand_over([str(folder.path), *self._options(resume)], environment)
            if forked is not None:
                return forked
        # Appended to: what earlier attempts said stays, and supervisor and trainer never overwrite each other.
        with folder.log.open("ab") as log:
            return subprocess.Popen(
                [python, *command[1:]],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=working_folder(folder),
                env=environment,
                start_new_session=self.kind == "local",
                # A terminal sends Ctrl-C to its whole foreground group; the run is to get a request instead, and keep a
                # checkpoint.
                process_group=None if self.kind == "local" else 0,
            )


class Inline(Local):
    """A supervisor that ends when the process that launched it ends; nothing is left behind."""

    kind: Literal["local", "inline"] = "inline"

    def _options(self, resume: bool) -> list[str]:
        return ["--with-parent", str(os.getpid()), *super()._options(resume)]


def process_of(handle: Handle) -> psutil.Process | None:
    """Return the process of a handle; None where it has ended, or its pid is another's by now."""
    try:
        process = psutil.Process(int(handle["pid"]))
        same = abs(process.create_time() - float(handle["started"])) < 1.0
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except (psutil.Error, KeyError, TypeError, ValueError):
        return None


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
