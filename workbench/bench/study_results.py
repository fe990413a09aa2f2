"""The one file that a study fills: calibration and every finished run, replaced whole after each of them."""

from __future__ import annotations

import hashlib
import json
import math
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from workbench.errors import WorkbenchError
from workbench.recipe import Recipe
from workbench.runs.folder import write_json

FORMAT = 1


class StudyResults:
    """Everything a study knows; safe against a kill at any moment, and against threads of one process.

    Args:
        path: the JSON file; read if it exists.
        benchmark: whose results it holds; a file of another one is refused.

    Attributes:
        data: what the file holds: ``set``, ``calibration``, ``runs`` by key, ``failed`` arms by name, and where and
            with what they were made.

    Raises:
        WorkbenchError: the file is no study's, or of a newer version.
    """

    def __init__(self, path: Path, benchmark: str = "methods-study") -> None:
        self.path = path
        self._lock = threading.Lock()
        self.data: dict[str, Any] = {"benchmark": benchmark, "format": FORMAT, "runs": {}, "failed": {}}
        if path.exists():
            try:
                self.data = json.loads(path.read_text(encoding="utf-8"))
            except ValueError as error:
                raise WorkbenchError(f"'{path}' is not JSON ({error}); choose another --out") from None
            if self.data.get("benchmark") != benchmark or self.data.get("format", 0) > FORMAT:
                raise WorkbenchError(f"'{path}' was not written by this version's study; choose another --out")

    def own(self) -> FileLock:
        """The lock of whoever fills the file; a context.

        Raises:
            WorkbenchError: another study is filling it.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # The operating system's: a killed holder holds it no longer.
        lock = FileLock(self.path.with_name(f".{self.path.name}.lock"), timeout=0)
        try:
            lock.acquire()
        except Timeout:
            raise WorkbenchError(
                f"another study is filling '{self.path}'; wait for it, or choose another --out"
            ) from None
        return lock

    def put(self, **fields: Any) -> None:
        """Replace top-level fields and save."""
        with self._lock:
            self.data |= fields
            self._save()

    def loss(self, key: str, definition: str) -> float | None:
        """Held-out loss of a finished run, infinite if it diverged; None if it has to be run (again)."""
        run = self.data["runs"].get(key)
        if run is None or run["definition"] != definition:
            return None
        return math.inf if run["loss"] is None else float(run["loss"])

    def add(self, key: str, run: Mapping[str, Any]) -> None:
        """Save a finished run under its key, at once."""
        with self._lock:
            self.data["runs"][key] = {**run, "finished": time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())}
            self.data["failed"].pop(run["arm"], None)
            self._save()

    def fail(self, arm: str, why: str) -> None:
        """Note that an arm could not go on; it is tried again by the next start."""
        with self._lock:
            self.data["failed"][arm] = why
            self._save()

    def _save(self) -> None:
        write_json(self.path, self.data)


def essence(recipe: Recipe) -> dict[str, Any]:
    """What a recipe asks for beyond the defaults, without what differs between machines and runs.

    Knobs that a later version adds stay out as long as nobody turns them, so results outlive them.
    """
    left_out = ("data.paths", "data.heldout_paths", "budget.", "name", "notes", "seed", "execution.threads")
    changed = {path: here for path, (here, _) in recipe.diff(Recipe()).items() if here is not None}
    return {path: here for path, here in changed.items() if not path.startswith(left_out)}


def definition(recipe: Recipe) -> str:
    """Ten hexadecimal digits of what decides a run of the study: a run made under another is not this run."""
    parts = [essence(recipe), recipe.budget.unit, recipe.budget.amount, recipe.seed]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:10]
