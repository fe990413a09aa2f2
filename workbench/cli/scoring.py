"""``workbench score``, ``fill`` and ``generate``: what a run's model is worth, and a try at it."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from workbench.base.errors import RunError
from workbench.base.text import plain_lines, share_done
from workbench.client.asking import Filled, Generated
from workbench.client.run import Run
from workbench.store.score_table import score_rows, score_text

_SECONDS_BETWEEN = 5.0


def score(options: argparse.Namespace) -> int:
    """Score in the foreground with progress on stderr; then print the table of what was scored.

    Raises:
        RunError: no such run, benchmark or checkpoint.
        DataError: the items of a benchmark are not to be had.
    """
    run = Run(options.run, options.runs)
    names = [name for name in (each.strip() for each in options.on.split(",")) if name]
    if not names:
        raise RunError("--on names no benchmark; for example --on blimp,lambada, or --on fast")
    data = Path(options.data).expanduser() if options.data else None
    # By name: it needs torch, which no other verb should wait for.
    job = importlib.import_module("workbench.scoring.job")
    found = job.score_job(run.folder, names, options.step, fast=options.fast, data=data, tell=_Progress())
    rows = [row for row in score_rows(run.folder) if row.name in found]
    if options.json:
        seeds = {row.name: list(row.seeds) for row in rows}
        scores = {row.name: asdict(row.score) | {"seeds": seeds[row.name], "step": row.step} for row in rows}
        print(json.dumps({"run": run.id, "step": rows[0].step, "scores": scores}))
    else:
        print(plain_lines(score_text(rows)))
    return 0


def fill(options: argparse.Namespace) -> int:
    """Print the likeliest words at a [MASK].

    Raises:
        RunError: no such run or checkpoint, or no [MASK].
    """
    return _asked(options, "fill", text=options.text, top=options.top)


def generate(options: argparse.Namespace) -> int:
    """Print a prompt with its continuation.

    Raises:
        RunError: no such run or checkpoint, or an objective that continues no text.
    """
    knobs = {"tokens": options.tokens, "temperature": options.temperature, "top_k": options.top_k}
    return _asked(options, "generate", prompt=options.prompt, seed=options.seed, **knobs)


def _asked(options: argparse.Namespace, what: str, **arguments: Any) -> int:
    run = Run(options.run, options.runs)
    # Here and not in the process beside: this one ends with the answer.
    asking = importlib.import_module("workbench.scoring.ask")
    question = {"ask": what, "folder": str(run.folder.path), "arguments": arguments | {"step": options.step}}
    found = asking.answer(asking.Models(), question)
    if "error" in found:
        raise RunError(found["error"])
    shown = str(Filled(**found)) if what == "fill" else str(Generated(**found))
    print(json.dumps(found) if options.json else plain_lines(shown))
    return 0


class _Progress:
    """A line on stderr whenever something new begins, and every few seconds."""

    def __init__(self) -> None:
        self._doing, self._next = "", 0.0

    def __call__(self, doing: str, share: float) -> None:
        if doing != self._doing or time.monotonic() >= self._next:
            print(f"{doing} {share_done(share) if share else ''}".rstrip(), file=sys.stderr, flush=True)
            self._doing, self._next = doing, time.monotonic() + _SECONDS_BETWEEN
