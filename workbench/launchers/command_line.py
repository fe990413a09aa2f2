"""What ``ps`` shows of a process that was forked: the command that would have started it."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from pathlib import Path

from workbench.launchers.launcher import module_command

ROOM = "-" * 500
"""An argument of a process whose forks take other commands: Linux shows as many characters as there were."""
# Of the fields that follow the name (proc(5) counts from 1 and calls them 48 and 49).
_START, _END = 45, 46


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
