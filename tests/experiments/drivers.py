"""Processes that drive experiments."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from tests.run_folders import processes_of


def drivers_in(place: Path) -> list[psutil.Process]:
    """Processes that drive an experiment in a folder of races or sweeps."""
    found = {process.pid: process for process in processes_of(place) if process.pid != os.getpid()}

    def is_fork(process: psutil.Process) -> bool:
        # What a driver starts bears the driver's own command line until it has become itself.
        try:
            return process.ppid() in found
        except psutil.NoSuchProcess:
            return True

    return [process for process in found.values() if not is_fork(process)]
