"""A queue of one core for the runs of a test, and runs folders of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from workbench.launchers.queue.queue_folder import Queue
from workbench.launchers.queue.settings import write_settings
from workbench.store.folder import RunFolder, write_json
from workbench.store.state import write_state


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Queue:
    """A queue with room for one run of one thread."""
    found = Queue(tmp_path / "queue")
    found.prepare()
    write_settings(found.folder, {"cores": 1})
    monkeypatch.setenv("WORKBENCH_QUEUE", str(found.folder))
    return found


@pytest.fixture
def new_run(tmp_path: Path) -> Callable[..., RunFolder]:
    """``new_run("a", threads=2)`` -> the folder of a run that nobody trains."""

    def _new_run(name: str, threads: int = 1, gpus: list[str] | None = None, **state: object) -> RunFolder:
        folder = RunFolder(tmp_path / "runs" / f"20260101-000000-{name}")
        folder.control.mkdir(parents=True)
        write_json(folder.recipe, {"name": name, "execution": {"threads": threads}})
        write_json(folder.needs, {"gpus": gpus or []})
        write_state(folder, **{"status": "queued", **state})  # type: ignore[arg-type]
        return folder

    return _new_run
