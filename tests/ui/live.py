"""A run as the page sees it, without its trainer: a folder that counts as alive while this process holds the lock."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workbench.runs.folder import RunFolder, write_json
from workbench.runs.state import take_lock, write_state


def run_folder(path: Path, status: str = "running", alive: bool = True, **recipe: Any) -> RunFolder:
    """A new run folder with a state and these fields of a recipe; ``alive``: its lock is held until the tests end."""
    folder = RunFolder(path)
    folder.path.mkdir(parents=True)
    write_json(folder.recipe, recipe)
    if alive:
        take_lock(folder)
    write_state(folder, status=status, heartbeat=time.time())
    return folder


def until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for what a thread is to bring about."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.01)
