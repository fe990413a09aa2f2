"""The folder of an experiment beside the runs folder: its paths, its state and its events."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from filelock import FileLock, Timeout

from workbench.base.errors import RunError
from workbench.base.json_lines import number
from workbench.base.text import plain
from workbench.store.find import alike
from workbench.store.folder import is_run_id, read_object, runs_root, write_json
from workbench.store.labels import LONGEST_TAG
from workbench.store.state import exclusive

ENDED = ("finished", "failed", "cancelled")
"""Statuses of an experiment that nobody drives any more."""
START_SECONDS = 30.0
"""A driver holds its lock after one second, or several on a busy machine; one that does not within this never began."""
_STARTING, _LOADING = "starting", "loading"


def json_objects(path: Path) -> list[dict[str, Any]]:
    """Read the objects of a file of JSON lines, oldest first, without damaged lines."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return [each for each in found if isinstance(each, dict)]


def append_json(path: Path, *facts: dict[str, Any]) -> None:
    """Append a line for each, durably: all of them or none.

    Raises:
        OSError: the disk is full or the folder is gone.
    """
    lines = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in facts).encode()
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            # Half a line, of a power cut, must not spoil this one, too.
            lines = b"\n" + lines
        if os.write(descriptor, lines) < len(lines):
            # A disk that fills up takes a part and calls it no error.
            os.ftruncate(descriptor, size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        # What follows from it, a run of this id, may be on the disk before it otherwise.
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class ExperimentFolder:
    """The paths of one experiment; its runs lie in the runs folder like all others.

    Attributes:
        noun: its name for people and for its plan's file. plural: the folder that holds all of a kind.
        verb: of the command line, where that is not the noun. working: its status while it goes on.
    """

    noun: ClassVar[str]
    plural: ClassVar[str]
    verb: ClassVar[str] = ""
    working: ClassVar[str]
    path: Path

    @classmethod
    def root(cls, runs_dir: str | Path | None = None) -> Path:
        """Return the folder of these experiments that belongs to a runs folder."""
        return runs_root(runs_dir).parent / cls.plural

    @classmethod
    def ids(cls, runs_dir: str | Path | None = None) -> list[str]:
        """List the ids beside a runs folder, oldest first."""
        root = cls.root(runs_dir)
        try:
            names = os.listdir(root)
        except OSError:
            return []
        begun: dict[str, tuple[str, int]] = {}
        for name in filter(is_run_id, names):
            with suppress(OSError):
                # Ids hold the second; of two within one, the plan that was written first is the older.
                begun[name] = name[: len("20260101-000000")], (root / name / f"{cls.noun}.json").stat().st_mtime_ns
        return sorted(begun, key=lambda name: (*begun[name], name))

    @classmethod
    def find(cls, which: str | Path, runs_dir: str | Path | None = None) -> Self:
        """Find the folder of one by its id, a unique beginning of it, its name, or its path.

        Raises:
            RunError: no such one, or several; see :func:`find_one`.
        """
        found = find_one(which, [cls], runs_dir)
        assert isinstance(found, cls)
        return found

    @classmethod
    def matching(cls, which: str | Path, runs_dir: str | Path | None = None) -> list[Self]:
        """List the folders that a word names, oldest first: by path, id, beginning of an id, or name."""
        if which and (folder := cls(Path(which).expanduser().absolute())).plan.is_file():
            return [folder]
        known = cls.ids(runs_dir)
        ids = [which] if which in known else [each for each in known if each.startswith(str(which))] if which else []
        ids = ids or [each for each in known if str(which) in cls(cls.root(runs_dir) / each)._names]
        return [cls(cls.root(runs_dir) / str(each)) for each in ids]

    @classmethod
    def of_runs(cls, tag: str, begun: str, runs_dir: str | Path | None = None) -> Self:
        """Find the folder whose runs have a tag and ids that begin with a moment.

        Args:
            tag: :attr:`tag`. begun: as ``20260131-081500``, with which its own id and those of its runs begin.

        Raises:
            RunError: it is not there any more.
        """
        for name in cls.ids(runs_dir):
            folder = cls(cls.root(runs_dir) / name)
            if name.startswith(begun) and folder.tag == tag:
                return folder
        raise RunError(f"the {cls.noun} of these runs is not in {cls.root(runs_dir)} any more: its folder was moved or "
                       "deleted")  # fmt: skip

    @property
    def id(self) -> str:
        """Its id."""
        return self.path.name

    @property
    def name(self) -> str:
        """Its name for people."""
        return str(read_object(self.plan).get("name") or self.id)

    @property
    def command(self) -> str:
        """The command that follows it in a terminal."""
        found_by_id = self.path.parent == self.root()
        return f"workbench {self.verb or self.noun} {self.id if found_by_id else shlex.quote(str(self.path))}"

    @property
    def tag(self) -> str:
        """The tag of its runs, ``race:NAME``; stages of a tuning have the tuning's."""
        return str(read_object(self.plan).get("part_of") or self.tag_of(self.name))

    @property
    def is_stage(self) -> bool:
        """True for the sweep and the race of a tuning."""
        return bool(read_object(self.plan).get("part_of"))

    @property
    def _names(self) -> set[str]:
        tag = self.tag_of(self.name)
        return {self.name, tag, tag.partition(":")[2]}

    @classmethod
    def tag_of(cls, name: str) -> str:
        """Return the tag of runs of one of that name."""
        slug = re.sub(r"[^\w.-]+", "-", name).strip("-")
        return f"{cls.noun}:{slug}"[:LONGEST_TAG].rstrip("-:")

    @property
    def plan(self) -> Path:
        """``race.json`` and the like: the plan, written once before anything is launched."""
        return self.path / f"{self.noun}.json"

    @property
    def state(self) -> Path:
        """``state.json``: status and message, replaced whole under the folder's lock."""
        return self.path / "state.json"

    @property
    def events(self) -> Path:
        """``events.jsonl``: launches and decisions, appended line by line."""
        return self.path / "events.jsonl"

    @property
    def log(self) -> Path:
        """``driver.log``: stdout and stderr of the drivers."""
        return self.path / "driver.log"

    def driver_lock(self) -> FileLock:
        """Return the lock that its one driver holds while it lives."""
        return FileLock(self.path / "driver.lock")

    def driven(self) -> bool:
        """Return True while a driver is alive."""
        lock = self.driver_lock()
        try:
            lock.acquire(timeout=0)
        except (Timeout, OSError):
            return True  # one of somebody else's is theirs to drive
        lock.release()
        return False

    def starting(self) -> bool:
        """Return True while its first driver is expected to start."""
        state = self.read_state()
        return state["message"] == _STARTING and 0 <= time.time() - number(state.get("time")) < START_SECONDS

    def begin(self) -> None:
        """Note that a driver is at work, so that nobody waits for it to start."""
        # Who cannot write that on a full disk is waited for as one that starts.
        with suppress(OSError), exclusive(self.path):
            if self.read_state()["message"] == _STARTING:
                self.write_state(self.working, _LOADING)

    def create(self, plan: dict[str, Any], fill: Callable[[], Any] = lambda: None) -> None:
        """Write a new experiment's folder.

        Args:
            fill: writes what else belongs there.

        Raises:
            RunError: it cannot be written.
        """
        try:
            self.path.mkdir(parents=True)
            self.write_state(self.working, _STARTING)
            fill()
            # Last: a folder without it is no experiment.
            write_json(self.plan, plan)
        except OSError as error:
            raise RunError(f"the {self.noun} cannot be written to {self.path}: {error}; free some space, or choose "
                           "another place with runs_dir (`--runs DIR`, $WORKBENCH_RUNS)") from None  # fmt: skip

    def read_state(self) -> dict[str, Any]:
        """Return ``status`` and ``message`` as last written."""
        return {"status": self.working, "message": "", **read_object(self.state)}

    def write_state(self, status: str, message: str) -> None:
        """Replace the state whole.

        Raises:
            OSError: the disk is full or the folder is gone.
        """
        write_json(self.state, {"status": status, "message": message, "time": time.time()})

    def add_event(self, kind: str, **facts: Any) -> None:
        """Append one line to the events.

        Raises:
            OSError: the disk is full or the folder is gone.
        """
        append_json(self.events, {"time": round(time.time(), 3), "kind": kind, **facts})

    def read_events(self) -> list[dict[str, Any]]:
        """Return all events, oldest first, without damaged lines."""
        return json_objects(self.events)


class RaceFolder(ExperimentFolder):
    """The paths of one race."""

    noun: ClassVar[str] = "race"
    plural: ClassVar[str] = "races"
    working: ClassVar[str] = "racing"


class SweepFolder(ExperimentFolder):
    """The paths of one sweep."""

    noun: ClassVar[str] = "sweep"
    plural: ClassVar[str] = "sweeps"
    working: ClassVar[str] = "sweeping"

    @property
    def points(self) -> Path:
        """``points.jsonl``: the settings tried so far, in order, appended line by line."""
        return self.path / "points.jsonl"

    @property
    def rates(self) -> Path:
        """``rates.json``: of the machine by which points are sized; absent for this one."""
        return self.path / "rates.json"


class TuningFolder(ExperimentFolder):
    """The paths of one tuning; its sweep and its race lie among all others, under its own id."""

    noun: ClassVar[str] = "tuning"
    plural: ClassVar[str] = "tunings"
    verb: ClassVar[str] = "tune"
    working: ClassVar[str] = "tuning"

    @property
    def evidence(self) -> Path:
        """``evidence.json``: every setting that was tried, what was kept and why, the race; replaced whole."""
        return self.path / "evidence.json"


class FinetuningFolder(ExperimentFolder):
    """The paths of one fine-tuning."""

    noun: ClassVar[str] = "finetuning"
    plural: ClassVar[str] = "finetunings"
    verb: ClassVar[str] = "finetune"
    working: ClassVar[str] = "fine-tuning"

    @property
    def tested(self) -> Path:
        """``tested.json``: scores of the test, written once."""
        return self.path / "tested.json"


KINDS: list[type[ExperimentFolder]] = [TuningFolder, RaceFolder, SweepFolder, FinetuningFolder]
"""Tunings first: the sweep and the race of one have its id, and it stands before them."""


def find_one(
    which: str | Path, kinds: Sequence[type[ExperimentFolder]], runs_dir: str | Path | None = None
) -> ExperimentFolder:
    """Find the one experiment that a word names.

    Args:
        which: its id, a unique beginning of it, its name, or its folder.

    Raises:
        RunError: none, or several; the message names them, or what is alike, or the latest of each kind.
    """
    matching = find_all(which, kinds, runs_dir)
    if len(matching) == 1:
        return matching[0]
    if matching:
        named = ", ".join(f"{each.noun} {each.id}" for each in matching[-5:])
        raise RunError(f"'{which}' names {len(matching)} experiments: {named}; write more of its id")
    nouns = " or ".join(kind.noun for kind in kinds)
    if isinstance(which, Path) or os.sep in which:
        files = " or ".join(f"{kind.noun}.json" for kind in kinds)
        raise RunError(f"no {nouns} in '{which}': that folder has no {files}")
    known: dict[str, ExperimentFolder] = {}
    for kind in kinds:
        for each in kind.ids(runs_dir):
            known.setdefault(each, kind(kind.root(runs_dir) / each))
    called = {folder.name: folder for folder in known.values()}
    latest = {folder.noun: f"{folder.noun} {folder.id}" for folder in known.values()}
    other = f"the latest: {', '.join(latest.values()) or 'none'}"
    if near := alike(str(which), list(called)):
        other = "nearest: " + ", ".join(f"{called[name].noun} '{plain(name)}' ({called[name].id})" for name in near)
    raise RunError(f"no {nouns} '{which}' beside {runs_root(runs_dir)}; {other}")


def find_all(
    which: str | Path, kinds: Sequence[type[ExperimentFolder]], runs_dir: str | Path | None = None
) -> list[ExperimentFolder]:
    """List all experiments that a word names, by path, id, beginning of an id, or name."""
    found: dict[str, ExperimentFolder] = {}
    for kind in kinds:
        for folder in kind.matching(which, runs_dir):
            found.setdefault(folder.id, folder)
    return list(found.values())
