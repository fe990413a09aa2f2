"""Every path of a race, beside the runs folder, and what stands in its files."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from workbench.errors import RunError
from workbench.runs.folder import is_run_id, read_object, runs_root, write_json

ENDED = ("finished", "failed", "cancelled")
"""Statuses of a race that nobody drives any more."""


def races_root(runs_dir: str | Path | None = None) -> Path:
    """The folder of races that belongs to a runs folder: ``races`` beside it."""
    return runs_root(runs_dir).parent / "races"


@dataclass(frozen=True)
class RaceFolder:
    """The paths of one race; its runs lie in the runs folder like all others."""

    path: Path

    @property
    def id(self) -> str:
        """The race id."""
        return self.path.name

    @property
    def plan(self) -> Path:
        """``race.json``: arms, seeds, budget, looks; written once, before anything is launched."""
        return self.path / "race.json"

    @property
    def state(self) -> Path:
        """``state.json``: status and message; replaced whole under the folder's lock."""
        return self.path / "state.json"

    @property
    def events(self) -> Path:
        """``events.jsonl``: what was launched and decided, appended line by line."""
        return self.path / "events.jsonl"

    @property
    def log(self) -> Path:
        """``driver.log``: stdout and stderr of the drivers."""
        return self.path / "driver.log"

    def driver_lock(self) -> FileLock:
        """Held by the race's one driver for as long as it lives; the kernel frees it whatever ends the process."""
        return FileLock(self.path / "driver.lock")

    def driven(self) -> bool:
        """Whether a driver is alive."""
        lock = self.driver_lock()
        try:
            lock.acquire(timeout=0)
        except (Timeout, OSError):
            return True  # a race of somebody else's is theirs to drive
        lock.release()
        return False

    def read_state(self) -> dict[str, Any]:
        """``status`` and ``message``, as last written."""
        return {"status": "racing", "message": "", **read_object(self.state)}

    def write_state(self, status: str, message: str) -> None:
        """Replace the state whole.

        Raises:
            OSError: the disk is full or the folder is gone.
        """
        write_json(self.state, {"status": status, "message": message, "time": time.time()})

    def add_event(self, kind: str, **facts: Any) -> None:
        """Append one line.

        Raises:
            OSError: the disk is full or the folder is gone.
        """
        line = json.dumps({"time": round(time.time(), 3), "kind": kind, **facts}, ensure_ascii=False) + "\n"
        # One write of one line: several processes may append.
        descriptor = os.open(self.events, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)

    def read_events(self) -> list[dict[str, Any]]:
        """All events, oldest first; damaged lines are left out."""
        try:
            lines = self.events.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []
        found = []
        for line in lines:
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
        return [event for event in found if isinstance(event, dict)]


def race_ids(runs_dir: str | Path | None = None) -> list[str]:
    """Ids of the races beside a runs folder, oldest first."""
    root = races_root(runs_dir)
    try:
        names = os.listdir(root)
    except OSError:
        return []
    return sorted(name for name in names if is_run_id(name) and RaceFolder(root / name).plan.is_file())


def find_race(race: str | Path, runs_dir: str | Path | None = None) -> RaceFolder:
    """The folder of a race by its id, a unique beginning of it, or its path.

    Raises:
        RunError: no such race; the message names the latest.
    """
    if isinstance(race, Path) or os.sep in race:
        folder = RaceFolder(Path(race).expanduser().absolute())
        if not folder.plan.is_file():
            raise RunError(f"no race in '{folder.path}': that folder has no race.json")
        return folder
    known = race_ids(runs_dir)
    matching = [race] if race in known else [each for each in known if each.startswith(race)] if race else []
    if len(matching) == 1:
        return RaceFolder(races_root(runs_dir) / matching[0])
    if matching:
        raise RunError(f"'{race}' begins {len(matching)} race ids: {', '.join(matching[-5:])}; write more of it")
    latest = f"the latest: {', '.join(known[-3:])}" if known else "that folder holds no races"
    raise RunError(f"no race '{race}' in {races_root(runs_dir)}; {latest}")
