"""The command line as a user meets it: a process, its exit code, stdout and stderr."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.run_folders import root  # noqa: F401  (the same fixture as for runs)

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def workbench(tmp_path: Path) -> Command:
    """``workbench(*arguments)`` runs the command in an empty folder."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "workbench", *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=200)

    return run
