"""Runs :mod:`workbench.choices.data.harvest` in several processes at once.

Plain child processes of the interpreter, spoken to in lines of JSON: a pool of ``multiprocessing`` would either import
the user's main script again (spawn) or fork a process that already has threads (telemetry, a notebook's kernel).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from workbench.base.errors import DataError
from workbench.choices.data import harvest

CHUNK_FILES = 48
"""Files per request: small enough that no worker is left with a long tail, large enough that waiting does not count."""

Documents = list[list[str]]


def available_cores() -> int:
    """Return cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def harvest_files(paths: Sequence[str], processes: int | None = None) -> Generator[Documents, None, None]:
    """Yield the cleaned documents of every file, in the order of the files, whichever worker read them.

    Args:
        processes: workers; one per core when not given.

    Raises:
        DataError: a worker died.
    """
    chunks = [list(paths[i : i + CHUNK_FILES]) for i in range(0, len(paths), CHUNK_FILES)]
    count = max(1, min(processes or available_cores(), len(chunks)))
    workers = [_start() for _ in range(count)]
    free: SimpleQueue[subprocess.Popen[str]] = SimpleQueue()
    for worker in workers:
        free.put(worker)

    def ask(chunk: list[str]) -> list[Documents]:
        worker = free.get()
        try:
            return _ask(worker, chunk)
        finally:
            free.put(worker)

    pool = ThreadPoolExecutor(count, thread_name_prefix="harvest")
    try:
        # map keeps the order of the chunks, so that the corpus does not depend on which worker was faster.
        for answer in pool.map(ask, chunks):
            yield from answer
    finally:
        pool.shutdown(cancel_futures=True)
        for worker in workers:
            # Not asked to end: they hold nothing that could be lost, and one may be in the middle of a long request.
            worker.kill()
            worker.communicate()


def _start() -> subprocess.Popen[str]:
    # -I: neither the user's PYTHON* variables nor the current folder can shadow the standard library.
    return subprocess.Popen(
        [sys.executable, "-I", "-X", "utf8", str(Path(harvest.__file__))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def _ask(worker: subprocess.Popen[str], chunk: list[str]) -> list[Documents]:
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        worker.stdin.write(json.dumps(chunk) + "\n")
        worker.stdin.flush()
        line = worker.stdout.readline()
    except OSError:
        line = ""
    if not line:
        raise DataError(
            f"a process that reads documentation ended with code {worker.wait()} at one of '{chunk[0]}' .. "
            f"'{chunk[-1]}'; its message is above; limit data.packages to leave that package out"
        )
    return json.loads(line)  # type: ignore[no-any-return]
