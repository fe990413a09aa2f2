"""Processes of this package: how they are called, what surrounds them, and one that runs a module to its end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from workbench.base.errors import RunError
from workbench.base.heap_settings import heap_settings
from workbench.store.folder import RunFolder


def module_command(module: str, *arguments: str) -> list[str]:
    """Return argv that runs a module of this package in this Python.

    ``-P``: nothing in the working folder shadows a module.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def child_environment(**extra: str) -> dict[str, str]:
    """Return the environment of a process that this one starts; what the user has set stands."""
    environment = {**os.environ, **extra}
    environment |= heap_settings(environment)
    # Set by Jupyter for its kernels; our processes draw to files.
    if environment.get("MPLBACKEND", "").startswith("module://matplotlib_inline"):
        del environment["MPLBACKEND"]
    home = str(Path(__file__).parents[2])
    if Path(home).name not in ("site-packages", "dist-packages"):
        # A source tree that is not installed is importable here only through sys.path.
        known = environment.get("PYTHONPATH", "")
        if home not in known.split(os.pathsep):
            environment["PYTHONPATH"] = home + (os.pathsep + known if known else "")
    return environment


def run_module(folder: RunFolder, module: str, *arguments: str, seconds: float | None = None) -> None:
    """Run a module about a run, which needs more than a watcher has (torch, plotly); its warnings go to stderr.

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
