"""Real runs of a tiny recipe, each test in a runs folder of its own."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from workbench.launchers.local import process_of
from workbench.store.folder import RunFolder
from workbench.telemetry.streams import TelemetryWriter


@pytest.fixture
def root(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A runs folder; whatever still trains in it when the test ends is killed."""
    folder = tmp_path / "runs"
    yield folder
    if may_start(request):
        kill_processes_of(folder)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """An empty run folder."""
    path = tmp_path / "20260101-000000-a-000000-0000"
    path.mkdir()
    return RunFolder(path)


def write_records(folder: RunFolder, step: int) -> None:
    """Telemetry of a run that recorded a loss of 2.5 at this step last, after 512 tokens and 0.2 s for each."""
    writer = TelemetryWriter(folder.telemetry, flush_seconds=None)
    for each in range(max(1, step - 2), step + 1):
        writer.scalars(each, 0.2 * each, 512 * each, loss=2.5)
    writer.close()


def may_start(request: pytest.FixtureRequest) -> bool:
    """Return True if a test may have started processes: looking through all takes longer than most that start none."""
    from tests.costs import STARTING  # which pytest loads as a plugin, later than this file

    return any(map(request.node.get_closest_marker, STARTING))


def kill_processes_of(*places: Path) -> None:
    """End whatever works in these folders, place by place, without a word."""
    for place in places:
        for process in (*_launched(place), *processes_of(place)):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)


def _launched(place: Path) -> list[psutil.Process]:
    """Supervisors of a folder's runs and their trainers: those that were just forked do not have their names yet."""
    found = []
    for path in (place / "launched.json", *place.glob("*/launched.json")):
        with suppress(OSError, ValueError, KeyError, TypeError, psutil.NoSuchProcess):
            if supervisor := process_of(json.loads(path.read_text(encoding="utf-8"))["handle"]):
                found += [supervisor, *supervisor.children(recursive=True)]
    return found


def processes_of(runs: Path, module: str = "") -> list[psutil.Process]:
    """Supervisors and trainers (of a ``module``) whose run folder is or lies in ``runs``, zombies left out."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE:
                command = process.cmdline()
                within = any(f"{part}{os.sep}".startswith(f"{runs}{os.sep}") for part in command)
                # Here, where one that has ended meanwhile is passed over.
                if within and "-m" in command and (not module or module in command):
                    found.append(process)
        except psutil.Error:
            continue
    return found
