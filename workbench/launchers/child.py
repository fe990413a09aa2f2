"""Modules of this package that need more than a watcher has (torch, plotly), run in a process of their own."""

from __future__ import annotations

import subprocess
import sys

from workbench.base.errors import RunError
from workbench.launchers.launcher import child_environment, module_command
from workbench.store.folder import RunFolder


def run_module(folder: RunFolder, module: str, *arguments: str, seconds: float | None = None) -> None:
    """Run a module about a run and wait for its end; its warnings go to stderr.

    Args:
        seconds: after which it is ended; None for as long as it takes.

    Raises:
        RunError: it failed, with a message of its own, or took longer.
    """
    command, environment = module_command(module, *arguments), child_environment()
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise RunError(f"run '{folder.id}': {module} took longer than {seconds:g} s and was ended") from None
    output = done.stderr.decode("utf-8", "replace").strip()
    for line in output.splitlines():
        if line.startswith("warning: "):  # such as an older checkpoint in place of a damaged one
            print(line, file=sys.stderr)
    if done.returncode != 0:
        # Its own message may have several lines; of a traceback only the last one speaks to people.
        _, marker, message = f"\n{output}".rpartition("\nerror: ")
        why = message if marker else output.rpartition("\n")[2] or f"exit code {done.returncode}"
        whose = f"run '{folder.id}'"
        # Most of our own messages name the run already.
        raise RunError(why if why.startswith(whose) else f"{whose}: {why}")
