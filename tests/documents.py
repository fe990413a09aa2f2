"""The documents and the commands they tell, and what came of README's, which are run once for all tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.run_folders import kill_processes_of
from workbench.launchers import fork_server

ROOT = Path(__file__).parent.parent
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Set-up commands: the tests run inside what they made; `make demo`'s job has a test of its own, `make lab` never ends.
_SETUP = ("make ", "git ", "cd ", "pip ", "source ", "jupyter ")


@dataclass(frozen=True)
class Executed:
    """Commands of a document that were run in their order, up to the first that failed.

    Attributes:
        folder: where they were run, with what they left.
        commands: the lines, and how each ended.
    """

    folder: Path
    commands: dict[str, subprocess.CompletedProcess[str]]


def blocks(path: Path, language: str) -> list[str]:
    """Contents of the fenced blocks of one language."""
    return [body for name, body in _FENCE.findall(path.read_text(encoding="utf-8")) if name == language]


def code_cells(path: Path) -> list[Any]:
    """The code cells of a notebook."""
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def commands(path: Path) -> list[str]:
    """Shell lines of a document that can be executed as they stand, comments removed."""
    lines = [line.split("  #")[0].strip() for body in blocks(path, "bash") for line in body.splitlines()]
    return [line for line in lines if line and not line.startswith(("#", *_SETUP))]


def without_compiler(patch: pytest.MonkeyPatch) -> None:
    """Have commands train eagerly, by torch's own switch: compiling takes minutes, and is tested where runs resume."""
    patch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    patch.setenv("TORCH_COMPILE_DISABLE", "1")


@pytest.fixture(scope="session")
def held_without_compiler() -> Iterator[None]:
    """A process held ready for them, or each would load torch for its trainer; beside the one of all other tests.

    Who uses it belongs to the group "readme".
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fork_server, "_held", [])
        with pytest.MonkeyPatch.context() as environment:
            without_compiler(environment)
            fork_server.hold()
        ours = fork_server._held
    yield
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fork_server, "_held", ours)
        fork_server.release()


def execute(path: Path, folder: Path) -> Executed:
    """Run a document's commands in an empty folder, with the repository's notebooks where they expect them."""
    (folder / "notebooks").symlink_to(ROOT / "notebooks")
    ended: dict[str, subprocess.CompletedProcess[str]] = {}
    for line in commands(path):
        ended[line] = subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True, check=False)
        # What it has launched, and nobody waits for, would slow everything else down.
        kill_processes_of(folder / "runs")
        if ended[line].returncode != 0:
            break
    return Executed(folder, ended)
