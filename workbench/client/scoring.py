"""``wb.score``: a run scored on benchmarks by a process of its own, which outlives the notebook."""

from __future__ import annotations

import math
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workbench.base.errors import RunError
from workbench.base.files import file_locked
from workbench.base.text import plain, share_done
from workbench.client.run import Run
from workbench.launchers.processes import child_environment, module_command
from workbench.store.awaited import Awaited
from workbench.store.evaluations import Measured, scores_by_step
from workbench.store.folder import read_object
from workbench.store.score_table import score_rows, score_text

SCORING = "workbench.scoring"
"""The module that is started by name: it needs torch, and stands below."""


class Scoring(Awaited[dict[str, Measured]]):
    """The scoring of a run on benchmarks, seen from any process: its progress, its end and its scores.

    Args:
        run: that is scored.
    """

    def __init__(self, run: Run, process: subprocess.Popen[bytes] | None = None) -> None:
        self.run, self._process = run, process

    @property
    def progress(self) -> dict[str, Any]:
        """Return what is going on: ``status`` (running, finished, failed or lost), ``doing``, ``share``, ``error``."""
        found = read_object(self.run.folder.scoring)
        ours = self._process is None or found.get("pid") == self._process.pid
        if not ours and self._process is not None:
            # It has not said anything yet.
            code = self._process.poll()
            log = self.run.folder.scoring_log
            why = log.read_text(errors="replace").strip().removeprefix("error: ") if code and log.is_file() else ""
            return (
                {"status": "failed", "error": why} if code else {"status": "running", "doing": "starting", "share": 0.0}
            )
        if found.get("status") == "running" and not file_locked(self.run.folder.scoring_lock):
            # It may have ended between the two looks.
            again = read_object(self.run.folder.scoring)
            return again if again.get("status") != "running" else again | {"status": "lost"}
        return found

    @property
    def scores(self) -> dict[str, Measured]:
        """Return the newest score of each benchmark that the run has so far, by name."""
        return {name: score for named in scores_by_step(self.run.folder).values() for name, score in named.items()
                if score.beside or score.note}  # fmt: skip

    def ended(self, deadline: float = math.inf) -> bool:
        """Return True once it has ended. Raises as :meth:`Awaited.ended`."""
        # It holds its lock for a moment longer.
        if self.progress.get("status") != "running" and not file_locked(self.run.folder.scoring_lock):
            return True
        if time.monotonic() >= deadline:
            raise TimeoutError(f"run '{self.run.id}' is not scored in time; it goes on ({self})")
        return False

    def outcome(self) -> dict[str, Measured]:
        """Return its scores.

        Raises:
            RunError: it failed, or its process is gone.
        """
        found = self.progress
        if found.get("status") == "finished":
            return {name: score for name, score in self.scores.items() if name in found.get("scores", ())}
        if found.get("status") == "lost":
            raise RunError(f"the process that scored run '{self.run.id}' has ended without a word; score it again")
        raise RunError(found.get("error") or f"run '{self.run.id}' was not scored")

    def __str__(self) -> str:
        found = self.progress
        if found.get("status") == "running":
            return f"{plain(found.get('doing'))} {share_done(float(found.get('share') or 0))}"
        if found.get("status") == "finished":
            return score_text(score_rows(self.run.folder))
        return f"{found.get('status', 'not scored')}: {plain(found.get('error', ''), 500)}"

    __repr__ = __str__


def score(
    run: Run | str | Path,
    on: str | Sequence[str] = "fast",
    *,
    step: int | None = None,
    fast: bool = False,
    data: str | Path | None = None,
    runs_dir: str | Path | None = None,
) -> Scoring:
    """Score a run on benchmarks in the background; returns at once.

    The scores go into the run (``scores.json``), its table, report and model card, each beside the same model untrained
    and what is reached without a model.

    Args:
        run: a run, its id, name or folder.
        on: names of benchmarks: blimp, blimp_supplement, lambada, arc_easy, piqa, copa; ``fast`` for the first items of
            all. A list, or text with commas.
        step: of the checkpoint; None for the newest good one.
        fast: the first 50 pairs of each paradigm, 100 questions, 200 passages alone.
        data: folder in which the files of the benchmarks are looked for; else ``$WORKBENCH_EVAL``, else the Hugging
            Face Hub.
        runs_dir: the runs folder; else ``$WORKBENCH_RUNS``, else ``./runs``.

    Raises:
        RunError: no such run, or it is being scored already.

    Example:
        >>> wb.score(run, on="blimp", fast=True).wait()  # doctest: +SKIP
    """
    run = run if isinstance(run, Run) else Run(run, runs_dir)
    if file_locked(run.folder.scoring_lock):
        raise RunError(f"run '{run.id}' is being scored already: {Scoring(run)}")
    names = on if isinstance(on, str) else ",".join(on)
    more = [*(["--fast"] if fast else []), *([] if step is None else ["--step", str(step)])]
    more += [] if data is None else ["--data", str(Path(data).expanduser().absolute())]
    command = module_command(SCORING, str(run.folder.path), "--on", names, *more)
    with run.folder.scoring_log.open("wb") as log:
        # A session of its own: it goes on when the kernel is restarted.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=child_environment(), start_new_session=True
        )
    return Scoring(run, process)
