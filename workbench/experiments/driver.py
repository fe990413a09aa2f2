"""Carrying an experiment forward: ``python -m workbench.experiments CLASS FOLDER``.

The process owns nothing: killed at any moment, it leaves an experiment that the next driver goes on with.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Protocol

from filelock import Timeout

from workbench.base.errors import RunError
from workbench.experiments.experiment_folder import ENDED
from workbench.launchers import fork_server
from workbench.launchers.processes import child_environment, module_command
from workbench.launchers.supervisor import REPORT_VARIABLE
from workbench.store.state import exclusive

POLL_SECONDS, MOST_PATIENCE_SECONDS = 0.5, 60.0
# A reader holds the lock for microseconds while it tests it.
_LOCK_PATIENCE_SECONDS = 2.0


class Driven(Protocol):
    """An experiment that a driver carries forward (:class:`workbench.experiments.experiment.Experiment`)."""

    folder: Any

    def advance(self) -> Any:
        """Bring it forward as far as it goes now."""


def drive(held: Driven) -> int:
    """Drive one experiment to its end; returns the exit code."""
    lock = held.folder.driver_lock()
    try:
        lock.acquire(timeout=_LOCK_PATIENCE_SECONDS)
    except Timeout:
        return 0  # it has a driver
    # Sent to whole groups by a terminal that is interrupted or closed.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with lock:
        held.folder.begin()
        # Runs of an experiment are short and many: torch is loaded once for all, and a report drawn where one is asked
        # for (seconds of a core each).
        fork_server.hold()
        os.environ.setdefault(REPORT_VARIABLE, "off")
        return _drive(held)


def _drive(held: Driven) -> int:
    folder, pause = held.folder, POLL_SECONDS
    while True:
        try:
            held.advance()
            pause = POLL_SECONDS
        except (RunError, OSError) as error:
            if not folder.plan.is_file():
                return 1  # deleted
            # A full disk may be emptied: as runs do, an experiment waits for that.
            # Its log lies on the same disk.
            with contextlib.suppress(OSError):
                print(f"{time.strftime('%F %T')} {error}", file=sys.stderr, flush=True)
            with contextlib.suppress(OSError), exclusive(folder.path):
                if folder.read_state()["status"] not in ENDED:
                    folder.write_state(folder.working, f"waiting: {error}")
            pause = min(MOST_PATIENCE_SECONDS, 2 * pause)
        if folder.read_state()["status"] in ENDED:
            return 0
        time.sleep(pause)


def start_driver(held: Driven, working_folder: Path) -> bool:
    """Start a driver in a session of its own, unless one of this process's is alive; returns whether it did.

    Args:
        working_folder: where relative paths of the recipes start.

    Raises:
        RunError: the process could not be started.
    """
    folder, kind = held.folder, type(held)
    if (known := _children.get(folder.path)) is not None and known.poll() is None:
        return False
    try:
        with folder.log.open("ab") as log:
            child = _children[folder.path] = subprocess.Popen(
                module_command("workbench.experiments", f"{kind.__module__}:{kind.__name__}", str(folder.path)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=working_folder if working_folder.is_dir() else None,
                env=child_environment(),
                start_new_session=True,
            )
    except OSError as error:
        raise RunError(f"the driver of {folder.noun} '{folder.id}' could not be started: {error}") from None
    # A kernel lives for days: whatever ended in it would stay as a zombie until somebody asks.
    threading.Thread(target=child.wait, name=f"end of {folder.noun} {folder.id}", daemon=True).start()
    return True


_children: dict[Path, subprocess.Popen[bytes]] = {}
