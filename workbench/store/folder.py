"""Every path of a run, in one place. Standard library only: the trainer, the watchers and the page all use it."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.base.errors import RunError
from workbench.base.files import write_bytes

RUNS_VARIABLE = "WORKBENCH_RUNS"
READ_LIMIT_BYTES = 1 << 26
"""Bytes of one JSON file of a run; the largest, a tokenizer of 100,000 pieces, has some megabytes."""
# Neither dots nor slashes: such a name can only lead to a place inside the runs folder.
_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
NO_RUNS = ("lessons", "tasks")
"""Folders within a runs folder that hold no run: answers of learners, and tasks that are set for them."""
_GIVEN = re.compile(r"\d{8}-\d{6}-(.+)-[0-9a-f]{6}-[0-9a-f]{4}")
_STAMP = re.compile(r"[0-9]{8}-[0-9]{6}(?=-)")


def runs_root(runs_dir: str | Path | None = None) -> Path:
    """Return the runs folder: the argument, else ``$WORKBENCH_RUNS``, else ``./runs``; absolute."""
    # Absolute at once: a notebook may change its working folder while it holds runs.
    return Path(runs_dir or os.environ.get(RUNS_VARIABLE) or "runs").expanduser().absolute()


def is_run_id(name: str) -> bool:
    """Return True if a name has the form of a run id, and so can be no path."""
    return _ID.fullmatch(name) is not None and name not in NO_RUNS


def new_run_id(name: str, recipe_hash: str, now: float | None = None) -> str:
    """Return ``<UTC time>-<name>-<short hash>-<random>``, within ``[a-z0-9-]{1,64}``."""
    # UTC, so that ids sort by time across machines and across the hour that summer time repeats.
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:24].strip("-") or "run"
    # At most 15 + 24 + 6 + 4 characters and three dashes: within the 64 of the form. The random part tells runs of one
    # recipe and second apart; `launch` draws again on a clash.
    return f"{stamp}-{slug}-{recipe_hash[:6]}-{os.urandom(2).hex()}"


def name_in(run_id: str) -> str | None:
    """Return the run's name as :func:`new_run_id` wrote it into an id; None in an id of another form."""
    parts = _GIVEN.fullmatch(run_id)
    return parts[1] if parts else None


def stamp_in(run_id: str) -> str:
    """Return the UTC time with which an id begins, as text that sorts by time; empty where there is none."""
    stamp = _STAMP.match(run_id)
    return stamp[0] if stamp else ""


class _Part:
    """A file or folder of a run, by its name there."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, folder: RunFolder, owner: type) -> Path:
        return folder.path / self.name


@dataclass(frozen=True)
class RunFolder:
    """The paths of one run. Creates nothing by itself."""

    path: Path

    @classmethod
    def of(cls, run_id: str, runs_dir: str | Path | None = None) -> RunFolder:
        """Return the folder of a run id, held inside the runs root.

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

    def log_of(self, rank: int) -> Path:
        """Return where a process of several that train the run together prints: ``worker-1.log`` and so on."""
        return self.path / f"worker-{rank}.log" if rank else self.log

    def sign_of(self, rank: int) -> Path:
        """Return where a process beside the first writes again and again what it does: ``worker-1.json`` and so on."""
        return self.path / f"worker-{rank}.json"

    recipe = _Part("recipe.json")
    """The recipe as it was asked for."""
    environment = _Part("environment.json")
    """Packages, git revision, device, host, calibrated matmul rate, data fingerprint."""
    origin = _Part("origin.json")
    """The checkpoint and run that a fork goes on from, and what was changed; absent for other runs."""
    labels = _Part("labels.json")
    """Name, tags and notes that people gave the run; absent until the first."""
    forecast = _Part("forecast.json")
    """The forecast, where somebody had looked before the launch; absent otherwise."""
    needs = _Part("needs.json")
    """Processes, threads, and GPUs of which each takes one; see the queue."""
    state = _Part("state.json")
    """Status, process identity and heartbeat; replaced atomically."""
    launched = _Part("launched.json")
    """By which launcher, from which working folder, as which process."""
    reserve = _Part("reserve")
    """A little disk space to give up, so that a full disk still lets the last status be written."""
    lock = _Part("trainer.lock")
    """Held (flock) for as long as a supervisor or trainer of this run is alive."""
    telemetry = _Part("telemetry")
    """Folder of the append-only streams."""
    control = _Part("control")
    """Folder of control requests and their answers."""
    knobs = _Part("control/knobs.json")
    """Knobs that may be set in the running run; written by the trainer."""
    lease = _Part("control/lease.json")
    """The name of whoever steers the run."""
    initial = _Part("initial")
    """A checkpoint of another run whose weights it begins with; absent where they are drawn from its seed."""
    checkpoints = _Part("checkpoints")
    """Folder of ``step-N`` folders."""
    following = _Part("following.lock")
    """Held (flock) for as long as a process copies this run from elsewhere, or to there; see ``store/mirror.py``."""
    following_log = _Part("following.log")
    """Output of that process."""
    graphs = _Part("graphs")
    """Graphs that an engine made of the model, to look into; absent where an engine has nothing of the kind."""
    profile = _Part("profile.json")
    """Times of the parts of a step, the last time that somebody asked; absent before."""
    evaluations = _Part("evaluations.json")
    """Held-out losses and the final result."""
    scores = _Part("scores.json")
    """Scores of benchmarks; absent until the first."""
    scoring = _Part("scoring.json")
    """Benchmarks that are being scored, and how far; absent until somebody asks."""
    scoring_lock = _Part("scoring.lock")
    """Held (flock) for as long as a process scores this run on benchmarks."""
    scoring_log = _Part("scoring.log")
    """Output of the process that scores this run in the background."""
    tokenizer = _Part("tokenizer.json")
    """Copy of the tokenizer that the run trained with."""
    heldout = _Part("heldout.npz")
    """The tokens that the run's models are scored on; absent in runs of before they were kept."""
    log = _Part("worker.log")
    """stdout and stderr of supervisor and trainer, the first where several train the run together."""
    report = _Part("report.html")
    """The plots as one HTML page."""


def write_json(path: Path, value: Any, *, durable: bool = True) -> None:
    """Replace a JSON file whole or not at all (written aside, synced, renamed).

    Args:
        durable: fsync before the rename; leave out only for heartbeats.

    Raises:
        OSError: the disk is full or the folder is gone; the old file is untouched.
    """
    write_bytes(path, json_bytes(value), durable=durable)


def json_bytes(value: Any) -> bytes:
    """Return a value as the JSON files of a run hold it."""
    # Indented: people read these files, and a diff of two recipes shows the one knob.
    return json.dumps(value, ensure_ascii=False, indent=1).encode()


def parsed_json(data: bytes) -> Any:
    """Parse a JSON text; a whole number beyond every float, as no program of ours writes one, is None.

    Raises:
        ValueError, RecursionError: no JSON; thousands of brackets.
    """
    return json.loads(data, parse_int=_whole_number)


def _whole_number(digits: str) -> int | None:
    number = int(digits)
    try:
        float(number)
    except OverflowError:
        # Hundreds of digits: whoever divides by it or shows it would fail, far from the file that is damaged.
        return None
    return number


def read_json(path: Path, default: Any = None, *, limit: int = READ_LIMIT_BYTES, follow: bool = True) -> Any:
    """Read a JSON file's value; ``default`` when it is missing, no plain file or not (yet) JSON.

    Args:
        limit: bytes that are read at most; a longer file is damaged.
        follow: also through a link. Not where anybody may plant one that leads a process of ours elsewhere.
    """
    # Not waited for: a pipe in the place of a file would hold whoever lists the runs.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    # Twice: one that another machine has replaced since it was opened cannot be read on some network file systems.
    for gone in (errno.ESTALE, None):
        try:
            descriptor = os.open(path, flags)
            with os.fdopen(descriptor, "rb") as file:
                # At most so much: a device or a file of gigabytes must not fill the memory of whoever watches.
                return parsed_json(file.read(limit)) if stat.S_ISREG(os.fstat(descriptor).st_mode) else default
        # Ordinary for a reader: the trainer has not got that far, or the disk lost it. Callers show what there is.
        # RecursionError: brackets within brackets, thousands deep.
        except (OSError, ValueError, RecursionError) as error:
            if getattr(error, "errno", 0) != gone:
                break
    return default


def read_object(path: Path, **options: Any) -> dict[str, Any]:
    """Read a JSON file's object; empty where :func:`read_json` finds none, or a value of another kind."""
    value = read_json(path, **options)
    return value if isinstance(value, dict) else {}
