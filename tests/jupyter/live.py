"""A run as the page sees it, without its trainer: a folder that counts as alive while this process holds the lock."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import comm

from workbench.store.folder import RunFolder, write_json
from workbench.store.state import take_lock, write_state


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


class Wire(comm.base_comm.BaseComm):
    """A comm that keeps what is published instead of needing a kernel."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.published: list[tuple[dict[str, Any], list[bytes]]] = []
        super().__init__(*args, **kwargs)

    def publish_msg(self, msg_type, data=None, metadata=None, buffers=None, **keys):
        self.published.append((data or {}, list(buffers or [])))

    def custom(self) -> list[tuple[dict[str, Any], list[bytes]]]:
        return [(data["content"], buffers) for data, buffers in self.published if data.get("method") == "custom"]
