"""Limits of a machine's queue: one JSON file in its folder, for all who share it (`workbench queue set`)."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from workbench.base.errors import RunError, check_known
from workbench.store.folder import read_json, write_json

FILE = "settings.json"
LARGEST = 100_000
LARGEST_PRIORITY = 1000


@dataclass(frozen=True)
class QueueSettings:
    """Limits of a machine's queue; None: as many as there are, or no limit.

    Attributes:
        cores: that trainings take at once; a run takes as many as it has threads. None: the machine's physical cores.
        runs_per_gpu: that train on one GPU at once.
        running_per_owner, waiting_per_owner: runs of one owner.
        seconds_per_run: of training, after which a run is asked to stop; one with a longer budget is not launched.
        problem: why the file could not be read in full; empty when it could.
    """

    cores: int | None = None
    runs_per_gpu: int = 1
    running_per_owner: int | None = None
    # Each waits in a process of its own, of some 12 MB.
    waiting_per_owner: int | None = 300
    seconds_per_run: int | None = None
    problem: str = ""

    @property
    def capacity(self) -> int:
        """Cores in force."""
        return self.cores or physical_cores()


NAMES = tuple(field.name for field in fields(QueueSettings) if field.name != "problem")


def read_settings(folder: Path) -> QueueSettings:
    """Read the settings; damaged ones have their defaults, and ``problem`` says so."""
    path = folder / FILE
    raw = read_json(path, default=None, limit=1 << 16)
    if raw is None and not path.exists():
        return QueueSettings()
    way_out = "the defaults stand for them; `workbench queue set NAME=NUMBER` writes the file anew"
    if not isinstance(raw, dict):
        return QueueSettings(problem=f"the queue's settings in {path} are damaged: {way_out}")
    legal = {name: value for name, value in raw.items() if name in NAMES and _legal(name, value)}
    damaged = sorted(raw.keys() - legal.keys())
    problem = f"the queue's settings {', '.join(damaged)} in {path} make no sense: {way_out}" if damaged else ""
    return QueueSettings(**legal, problem=problem)


def write_settings(folder: Path, changes: dict[str, int | None]) -> QueueSettings:
    """Change settings (None: the default); returns those in force. Waiting runs look at them within seconds.

    Raises:
        RunError: no such setting, or not a number that it can have; nothing is changed.
    """
    for name, value in changes.items():
        check_known("queue setting", name, NAMES, RunError)
        if value is not None and not _legal(name, value):
            raise RunError(f"queue setting {name}: {value} is not a whole number of 1 to {LARGEST}, or empty")
    kept = {name: value for name, value in asdict(read_settings(folder)).items() if name in NAMES}
    default = asdict(QueueSettings())
    kept |= {name: default[name] if value is None else value for name, value in changes.items()}
    write_json(folder / FILE, {name: value for name, value in kept.items() if value != default[name]})
    # Whatever the umask grants: they are for all who share the machine.
    (folder / FILE).chmod(0o644)
    return read_settings(folder)


def physical_cores() -> int:
    """Return the cores that this process may compute on; two threads of one core count once."""
    try:
        allowed = os.sched_getaffinity(0)
    except AttributeError:  # not Linux
        return os.cpu_count() or 1
    siblings = Path("/sys/devices/system/cpu")
    try:
        return len({(siblings / f"cpu{each}/topology/thread_siblings_list").read_text() for each in allowed})
    except OSError:
        return len(allowed)


def _legal(name: str, value: Any) -> bool:
    if value is None:
        return name != "runs_per_gpu"
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= LARGEST
