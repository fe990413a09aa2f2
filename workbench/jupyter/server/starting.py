"""``workbench resume`` and ``workbench fork`` as processes of their own: a server loads no torch, and trains nothing.

What is started is this package's command line and nothing else, with arguments and no shell, in the Python and with the
settings that the run was launched with (:mod:`workbench.launchers.launched`). Its supervisor leaves the
server's session, so that the run outlives the server.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from typing import Any

from workbench.base.errors import RunError
from workbench.launchers.launched import launch_environment_of
from workbench.launchers.processes import child_environment
from workbench.store.folder import RunFolder
from workbench.store.state import read_state

PATIENCE_SECONDS = 90.0
"""For a process that loads torch from a cold disk."""
# Each takes a core for seconds and some 300 MB.
_at_once = asyncio.Semaphore(2)


class CannotStart(RuntimeError):
    """The server could not start it, which says nothing about a kernel."""


async def workbench(folder: RunFolder, verb: str, *arguments: str) -> dict[str, Any]:
    """Run one verb of the command line on a run; returns what it says with ``--json``.

    Args:
        folder: of the run.
        verb: ``resume`` or ``fork``.
        *arguments: further ones, none of which a page may choose but as the value of an option (``--set=...``).

    Raises:
        RunError: the request makes no sense.
        CannotStart: it was launched on another machine, or the process failed.
    """
    if (state := read_state(folder)).elsewhere:
        here = socket.gethostname()
        raise CannotStart(f"run '{folder.id}' was trained on {state.host}, and this server is on {here}")
    python, settings = launch_environment_of(folder)
    command = [python, "-P", "-m", "workbench", verb, folder.id, f"--runs={folder.path.parent}", "--json", *arguments]
    async with _at_once:
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=folder.path.parent,
                env=child_environment(**settings),
            )
        except (OSError, ValueError) as error:
            raise CannotStart(f"{python} cannot be started: {error}") from None
        try:
            out, errors = await asyncio.wait_for(process.communicate(), PATIENCE_SECONDS)
        except TimeoutError:
            # Left to its end: killed half-way, it would leave a half-made run behind.
            raise CannotStart(f"`workbench {verb}` still runs after {PATIENCE_SECONDS:g} s; look again") from None
    if process.returncode == 0:
        return _object(out)
    # 2: the request's fault (see the command line's exit codes).
    raise (RunError if process.returncode == 2 else CannotStart)(_why(errors.decode("utf-8", "replace"), python))


def _object(out: bytes) -> dict[str, Any]:
    try:
        value = json.loads(out)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {}


def _why(errors: str, python: str) -> str:
    errors = errors.strip()
    # Its own message may have several lines; of a traceback only the last one speaks to people.
    _, marker, message = f"\n{errors}".rpartition("\nerror: ")
    why = message if marker else errors.rpartition("\n")[2] or "it said nothing"
    elsewhere = f" ({python}; run it where the run was launched)" if "No module named" in why else ""
    return f"{why[:4000]}{elsewhere}" + ("" if python == sys.executable or elsewhere or marker else f" ({python})")
