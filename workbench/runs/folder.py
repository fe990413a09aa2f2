"""Every path of a run, in one place. Standard library only: the trainer, the watchers and the page all use it."""

from __future__ import annotations

import json
import os
import re
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.atomic import write_bytes
from workbench.errors import RunError

RUNS_VARIABLE = "WORKBENCH_RUNS"
READ_LIMIT_BYTES = 1 << 26
"""Of one JSON file of a run; the largest, a tokenizer of 100,000 pieces, has some megabytes."""
# Neither dots nor slashes: such a name can only lead to a place inside the runs folder.
_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


def runs_root(runs_dir: str | Path | None = None) -> Path:
    """The runs folder: the argument, else ``$WORKBENCH_RUNS``, else ``./runs``; absolute."""
    # Absolute at once: a notebook may change its working folder while it holds runs.
    return Path(runs_dir or os.environ.get(RUNS_VARIABLE) or "runs").expanduser().absolute()


def is_run_id(name: str) -> bool:
    """Whether a name has the form of a run id, and so can be no path."""
    return _ID.fullmatch(name) is not None


def new_run_id(name: str, recipe_hash: str, now: float | None = None) -> str:
    """``<UTC time>-<name>-<short hash>-<random>``, within ``[a-z0-9-]{1,64}``."""
    # UTC, so that ids sort by time across machines and across the hour that summer time repeats.
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:24].strip("-") or "run"
    # At most 15 + 24 + 6 + 4 characters and three dashes: within the 64 of the form. The random part tells runs of one
    # recipe and second apart; `launch` draws again on a clash.
    return f"{stamp}-{slug}-{recipe_hash[:6]}-{os.urandom(2).hex()}"


@dataclass(frozen=True)
class RunFolder:
    """The paths of one run. Creates nothing by itself.

    Args:
        path: the run's own folder, ``<runs root>/<run id>``.
    """

    path: Path

    @classmethod
    def of(cls, run_id: str, runs_dir: str | Path | None = None) -> RunFolder:
        """The folder of a run id, held inside the runs root.

        Raises:
            RunError: the id is not of the form ids have (so a path can never be smuggled in).
        """
        if not is_run_id(run_id):
            raise RunError(
                f"run id '{run_id}' is not of the form [a-z0-9-], at most 64 long; `workbench runs` lists them"
            )
        return cls(runs_root(runs_dir) / run_id)

    @property
    def id(self) -> str:
        """The run id."""
        return self.path.name

    @property
    def recipe(self) -> Path:
        """What was asked."""
        return self.path / "recipe.json"

    @property
    def environment(self) -> Path:
        """Packages, git revision, device, host, calibrated matmul rate, data fingerprint."""
        return self.path / "environment.json"

    @property
    def origin(self) -> Path:
        """Of a fork alone: which checkpoint of which run it goes on from, and what was changed."""
        return self.path / "origin.json"

    @property
    def labels(self) -> Path:
        """Tags and notes that people gave the run; absent until the first."""
        return self.path / "labels.json"

    @property
    def forecast(self) -> Path:
        """What it was expected to take, where somebody had looked before the launch; absent otherwise."""
        return self.path / "forecast.json"

    @property
    def state(self) -> Path:
        """Status, process identity and heartbeat; replaced atomically."""
        return self.path / "state.json"

    @property
    def launched(self) -> Path:
        """By which launcher, from which working folder, as which process."""
        return self.path / "launched.json"

    @property
    def reserve(self) -> Path:
        """A little disk space to give up, so that a full disk still lets the last status be written."""
        return self.path / "reserve"

    @property
    def lock(self) -> Path:
        """Held (flock) for as long as a supervisor or trainer of this run is alive."""
        return self.path / "trainer.lock"

    @property
    def telemetry(self) -> Path:
        """Folder of the append-only streams."""
        return self.path / "telemetry"

    @property
    def control(self) -> Path:
        """Folder of control requests and their answers."""
        return self.path / "control"

    @property
    def checkpoints(self) -> Path:
        """Folder of ``step-N`` folders."""
        return self.path / "checkpoints"

    @property
    def evaluations(self) -> Path:
        """Held-out losses and the final result."""
        return self.path / "evaluations.json"

    @property
    def tokenizer(self) -> Path:
        """Copy of the tokenizer that the run trained with."""
        return self.path / "tokenizer.json"

    @property
    def heldout(self) -> Path:
        """The tokens that the run's models are scored on; absent in runs of before they were kept."""
        return self.path / "heldout.npz"

    @property
    def log(self) -> Path:
        """stdout and stderr of supervisor and trainer."""
        return self.path / "worker.log"

    @property
    def report(self) -> Path:
        """The plots as one HTML page."""
        return self.path / "report.html"


def write_json(path: Path, value: Any, *, durable: bool = True) -> None:
    """Replace a JSON file whole or not at all (written aside, synced, renamed).

    Args:
        path: the file; its folder must exist.
        value: anything ``json`` can write.
        durable: fsync before the rename; leave out only for heartbeats.

    Raises:
        OSError: the disk is full or the folder is gone; the old file is untouched.
    """
    write_bytes(path, json_bytes(value), durable=durable)


def json_bytes(value: Any) -> bytes:
    """How the JSON files of a run are laid out."""
    # Indented: people read these files, and a diff of two recipes shows the one knob.
    return json.dumps(value, ensure_ascii=False, indent=1).encode()


def read_json(path: Path, default: Any = None) -> Any:
    """A JSON file's value, or ``default`` when it is missing, no plain file or not (yet) JSON."""
    try:
        # Not waited for: a pipe in the place of a file would hold whoever lists the runs.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            # At most so much: a device or a file of gigabytes must not fill the memory of whoever watches.
            return json.loads(file.read(READ_LIMIT_BYTES)) if stat.S_ISREG(os.fstat(descriptor).st_mode) else default
    # Ordinary for a reader: the trainer has not got that far, or the disk lost it. Callers show what there is.
    # RecursionError: brackets within brackets, thousands deep.
    except (OSError, ValueError, RecursionError):
        return default


def read_object(path: Path) -> dict[str, Any]:
    """A JSON file's object; empty where :func:`read_json` finds none, or a value of another kind."""
    value = read_json(path)
    return value if isinstance(value, dict) else {}
