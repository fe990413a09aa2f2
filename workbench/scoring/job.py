"""Scoring of a run as one job at a time, whose progress any process reads in the run's folder."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from workbench.base.errors import RunError
from workbench.scoring.benchmark import Tell, score, silent
from workbench.store.evaluations import Measured
from workbench.store.folder import RunFolder, write_json
from workbench.training.checkpoint import CheckpointError

_SECONDS_BETWEEN = 0.2


def score_job(
    folder: RunFolder,
    on: Sequence[str],
    step: int | None = None,
    *,
    fast: bool = False,
    data: Path | None = None,
    tell: Tell = silent,
) -> dict[str, Measured]:
    """Score a run as :func:`workbench.scoring.benchmark.score` does, with its progress in ``scoring.json``.

    A report that is there is written anew at the end.

    Raises:
        RunError: another process scores this run; and as ``score``.
    """
    if not folder.recipe.is_file():
        raise RunError(f"'{folder.path}' is not the folder of a run (no recipe.json in it)")
    descriptor = os.open(folder.scoring_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RunError(
                f"run '{folder.id}' is being scored by another process; ask again when it has ended"
            ) from None
        return _scored(folder, on, step, fast, data, tell)
    finally:
        os.close(descriptor)


def _scored(
    folder: RunFolder, on: Sequence[str], step: int | None, fast: bool, data: Path | None, tell: Tell
) -> dict[str, Measured]:
    facts = {"on": list(on), "fast": fast, "step": step, "pid": os.getpid(), "started": time.time()}
    last = 0.0

    def told(doing: str, share: float) -> None:
        nonlocal last
        tell(doing, share)
        if (now := time.monotonic()) - last >= _SECONDS_BETWEEN:
            last = now
            write_json(folder.scoring, facts | {"status": "running", "doing": doing, "share": share}, durable=False)

    told("loading the model", 0.0)
    try:
        found = score(folder, on, step, fast=fast, data=data, tell=told)
    except BaseException as error:
        text = str(error) or type(error).__name__
        write_json(folder.scoring, facts | {"status": "failed", "error": text})
        if isinstance(error, CheckpointError):
            raise RunError(text) from None
        raise
    if folder.report.is_file():
        tell("writing the report", 1.0)
        # By name: plots stand above this package.
        command = [sys.executable, "-P", "-m", "workbench.plots.report", str(folder.path)]
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
    write_json(folder.scoring, facts | {"status": "finished", "scores": sorted(found)})
    return found
