"""Write the result of a benchmark: JSON with hardware, versions, revision, date and every single reading."""

from __future__ import annotations

import hashlib
import importlib.metadata
import itertools
import json
import os
import platform
import statistics
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from workbench.base.errors import WorkbenchError
from workbench.recipes.recipe import Recipe
from workbench.store.folder import read_object, write_json
from workbench.training.machine import revision

PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "workbench")


def context(benchmark: str, packages: Sequence[str] = PACKAGES) -> dict[str, Any]:
    """Return where, when and with what a benchmark ran; no host name."""
    return {
        "benchmark": benchmark,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "hardware": hardware(),
        "versions": {name: importlib.metadata.version(name) for name in packages},
        "revision": revision(),
    }


def hardware() -> dict[str, Any]:
    """Return processor, cores, threads, accelerator and memory in words and GiB."""
    import psutil
    import torch

    from workbench.ops.remembered import device_name, processor

    flags = processor("flags").split()
    # One model name covers machines with and without these units, which decide the rate of bf16 products.
    wide = [flag for flag in ("avx512f", "avx512_bf16", "amx_bf16") if flag in flags]
    return {
        "processor": device_name(torch.device("cpu")) + (f" ({', '.join(wide)})" if wide else ""),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    }


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return median, least and greatest of some readings."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def save(name: str, result: dict[str, Any], folder: Path) -> Path:
    """Write ``<folder>/<name>-<date>.json`` with its :func:`context`; returns the path.

    A second result of one day gets a number: readings are never overwritten.
    """
    folder.mkdir(parents=True, exist_ok=True)
    where = context(name)
    first = f"{name}-{where['date']}"
    names = itertools.chain([first], (f"{first}-{number}" for number in itertools.count(2)))
    path = next(path for stem in names if not (path := folder / f"{stem}.json").exists())
    write_json(path, {**where, **result})
    return path


class ResultsFile:
    """The file of a benchmark that takes hours: saved whole after every run, gone on with by the next start.

    Attributes:
        data: ``runs`` by name, what :meth:`put` added, and the :func:`context` of the last change.

    Raises:
        WorkbenchError: the file holds something else.
    """

    def __init__(self, path: Path, benchmark: str) -> None:
        self.path = path
        self._lock = threading.RLock()
        self.data: dict[str, Any] = {"benchmark": benchmark, "runs": {}}
        if path.exists():
            found = read_object(path)
            if found.get("benchmark") != benchmark or not isinstance(found.get("runs"), dict):
                raise WorkbenchError(f"'{path}' holds no results of `bench {benchmark}`; choose another --out")
            self.data = found

    def own(self) -> FileLock:
        """Return the lock of the process that fills the file; a context.

        Raises:
            WorkbenchError: another process is filling it.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # The operating system's: a killed process holds it no longer.
        lock = FileLock(self.path.with_name(f".{self.path.name}.lock"), timeout=0)
        try:
            lock.acquire()
        except Timeout:
            message = f"another process is filling '{self.path}'; wait for it, or choose another --out"
            raise WorkbenchError(message) from None
        return lock

    def known(self, name: str, recipe: Recipe) -> dict[str, Any] | None:
        """Return the run of that name, if it was made from this very recipe."""
        run: dict[str, Any] | None = self.data["runs"].get(name)
        return run if run is not None and run["definition"] == definition(recipe) else None

    def add(self, name: str, recipe: Recipe, run: dict[str, Any]) -> None:
        """Save a finished run, at once; threads may fill one file."""
        with self._lock:
            self.data["runs"][name] = {"definition": definition(recipe), **run}
            self.put()

    def put(self, **fields: Any) -> None:
        """Replace top-level fields and save."""
        with self._lock:
            self.data |= {**context(self.data["benchmark"]), **fields}
            write_json(self.path, self.data)


def definition(recipe: Recipe) -> str:
    """Return ten hexadecimal digits of all that decides a run's result: no name, threads or paths.

    Knobs that a later version adds stay out as long as nobody turns them, so results outlive them.
    """
    left_out = ("data.paths", "data.heldout_paths", "budget.", "name", "notes", "seed", "execution.threads")
    changed = {path: here for path, (here, _) in recipe.diff(Recipe()).items() if here is not None}
    essence = {path: here for path, here in changed.items() if not path.startswith(left_out)}
    parts = [essence, recipe.budget.unit, recipe.budget.amount, recipe.seed]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:10]


def verdict(
    claim: str, value: float, sign: Literal[">=", "<="], target: float, unit: str = "", goal: float | None = None
) -> dict[str, Any]:
    """Return a claim, what was measured, and whether the target was met, as a result file has it.

    Args:
        target: what is to be reached (``>=``), or to be stayed below (``<=``).
        unit: of both; ``share`` and ``x`` among others.
        goal: of ambition; None for none.
    """
    met = value >= target if sign == ">=" else value <= target
    return {"claim": claim, "value": value, "sign": sign, "target": target, "unit": unit, "goal": goal, "met": met}
