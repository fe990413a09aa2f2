"""``workbench watch out.ipynb``: the runs of a notebook that papermill executes, while it does.

Papermill saves its output notebook whenever a cell begins or ends, and every 30 s within one. Ids of runs and races in
its outputs are all that is taken from it; nothing of it is executed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.base.errors import WorkbenchError
from workbench.cli.command import DONE, FAILED
from workbench.client.run import Run
from workbench.client.run_list import runs
from workbench.experiments.experiment_folder import KINDS, find_all
from workbench.plots.terminal import follow
from workbench.store.find import run_ids
from workbench.store.folder import READ_LIMIT_BYTES, runs_root, stamp_in
from workbench.store.state import FINAL

POLL_SECONDS, _TRIES = 1.0, 5
# As `new_run_id` makes them, of runs and of experiments.
_ID = re.compile(r"(?<![\w-])\d{8}-\d{6}-[a-z0-9][a-z0-9-]{0,40}-[0-9a-f]{6}-[0-9a-f]{4}(?![\w-])")


@dataclass(frozen=True)
class Headless:
    """A notebook's runs, as its outputs tell them now.

    Attributes:
        ended: papermill has finished it, or never executed it.
        runs: those that its outputs name, in their order, and those of the races and sweeps that they name.
        root: the runs folder in which they were looked for last.
    """

    ended: bool
    runs: list[Run]
    root: Path


def look(path: Path, runs_dir: str | None = None) -> Headless:
    """Read a notebook.

    Args:
        path: papermill's output.
        runs_dir: else its parameter ``runs_dir``; without one ``$WORKBENCH_RUNS``, or ``runs`` here or beside it.

    Raises:
        WorkbenchError: it is not there, or no notebook.
    """
    notebook = _read(path)
    papermill = notebook.get("metadata", {}).get("papermill") or {}
    given = runs_dir or (papermill.get("parameters") or {}).get("runs_dir")
    near = path.absolute().parent
    places = [Path(given).expanduser(), near / given] if given else [runs_root(), near / "runs"]
    outputs = [cell.get("outputs", []) for cell in notebook["cells"] if isinstance(cell, dict)]
    named = list(dict.fromkeys(_ID.findall(json.dumps(outputs))))
    root = places[0].absolute()
    for place in places:
        if found := _named(named, root := place.absolute()):
            break
    return Headless("start_time" not in papermill or bool(papermill.get("end_time")), found, root)


def _read(path: Path) -> dict[str, Any]:
    for _ in range(_TRIES):
        try:
            if path.stat().st_size > READ_LIMIT_BYTES:
                raise WorkbenchError(f"'{path}' is larger than {READ_LIMIT_BYTES >> 20} MiB; name a run instead")
            notebook = json.loads(path.read_bytes())
        except FileNotFoundError:
            raise WorkbenchError(
                f"there is no notebook '{path}'; papermill writes it when its first cell begins"
            ) from None
        except WorkbenchError:
            raise
        except ValueError:
            time.sleep(0.2)  # papermill is writing it
            continue
        if isinstance(notebook, dict) and isinstance(notebook.get("cells"), list):
            return notebook
        break
    raise WorkbenchError(f"'{path}' is no notebook; name papermill's output, or a run")


def _named(ids: list[str], root: Path) -> list[Run]:
    known = set(run_ids(root))
    found: dict[str, Run] = {}
    for each in ids:
        if each in known:
            found.setdefault(each, Run(each, root))
        for folder in find_all(each, KINDS, root):
            begun = stamp_in(folder.id)
            for run in reversed(runs(root).tagged(folder.tag)):
                if run.id.startswith(begun):
                    found.setdefault(run.id, run)
    return list(found.values())


def watch(options: argparse.Namespace) -> int:
    """Follow every run that the notebook names, until it and they have ended; Ctrl-C only ends the watching.

    Raises:
        WorkbenchError: it has ended, and names no run of the runs folder.
    """
    path, told = Path(options.run).expanduser(), set[str]()
    try:
        found = _followed(path, options, told)
    except KeyboardInterrupt:
        print("\nnotebook and runs go on", file=sys.stderr)
        found = look(path, options.runs)
    if options.json:
        print(
            json.dumps({"notebook": str(path), "ended": found.ended, "runs": [run.result.brief for run in found.runs]})
        )
    return FAILED if any(run.status in ("failed", "lost") for run in found.runs) else DONE


def _followed(path: Path, options: argparse.Namespace, told: set[str]) -> Headless:
    waiting = False
    while True:
        found = look(path, options.runs)
        going = [run for run in found.runs if run.status not in FINAL]
        if going:
            follow(*going, enough=_news(path, options.runs, found))
        for run in found.runs:
            if run.status in FINAL and run.id not in told:
                told.add(run.id)
                print(run.result, file=sys.stderr if options.json else sys.stdout, flush=True)
        if found.ended and not going:
            if not found.runs:
                raise WorkbenchError(
                    f"'{path}' has ended and names no run of {found.root}: print a run or its id in a cell of its own, "
                    "or name the runs folder with --runs"
                )
            return found
        if not found.runs and not waiting:
            waiting = True
            print(f"'{path}' names no run yet; looking on (Ctrl-C ends the watching)", file=sys.stderr, flush=True)
        time.sleep(POLL_SECONDS)


def _news(path: Path, runs_dir: str | None, before: Headless) -> Any:
    """Return a function that says, at most once a second, whether there are other runs than before."""
    next_look = time.monotonic() + POLL_SECONDS

    def news() -> bool:
        nonlocal next_look
        if time.monotonic() < next_look:
            return False
        next_look = time.monotonic() + POLL_SECONDS
        try:
            return [run.id for run in look(path, runs_dir).runs] != [run.id for run in before.runs]
        except WorkbenchError:
            return False  # it was moved away; the next look says so

    return news
