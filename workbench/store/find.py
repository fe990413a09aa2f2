"""Find the folder of a run by what a user typed."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from workbench.base.errors import RunError
from workbench.store.folder import RunFolder, is_run_id, name_in, runs_root
from workbench.store.labels import name_of

# A dot, which no run id begins with: no list ever sees it.
TRASH = ".trash"
FEWEST_LETTERS = 3
"""Letters at the beginning of a name that is like it; fewer begin too many."""


def find(run_id: str, runs_dir: str | Path | None = None, listed_by: str = "workbench runs") -> RunFolder:
    """Find the folder of a run by its id, a unique beginning of it, or its name where one run has it.

    Args:
        run_id: or a name: what runs are called now counts before what their ids say that they were launched as.
        listed_by: the command that lists what could have been typed.

    Raises:
        RunError: a path or nothing, unknown (the nearest are named), or the beginning or name of several.
    """
    root = runs_root(runs_dir)
    # Other text is only ever compared with names, so it can be no path.
    could_be_id = is_run_id(run_id) or not run_id
    if could_be_id:
        folder = RunFolder.of(run_id, runs_dir)
        # A link could lead anywhere; runs live in the runs folder.
        if folder.path.is_dir() and not folder.path.is_symlink():
            return folder
    known = run_ids(root)
    # As git does with hashes: nobody types forty characters.
    matching = [known_id for known_id in known if known_id.startswith(run_id)]
    # Two small files of every run: not for the beginning of an id.
    called = {} if matching else {known_id: name_of(RunFolder(root / known_id)) for known_id in known}
    named = called_so(run_id, called)
    for found, shared, way_out in (
        (matching, "begins {} run ids", "write more of it"),
        (named, "is the name of {} runs", "write the beginning of one id"),
    ):
        if len(found) == 1:
            return RunFolder(root / found[0])
        if found:
            several = shared.format(len(found))
            raise RunError(f"'{run_id}' {several}: {', '.join(sorted(found)[-5:])}; {way_out}")
    if could_be_id and (root / TRASH / run_id).is_dir():
        raise RunError(f"run '{run_id}' was deleted; `workbench restore {run_id}` brings it back from the trash")
    names = dict.fromkeys(filter(None, (*called.values(), *map(name_in, known), *known)))
    raise RunError(f"no run '{run_id}' in {root}{nearest(run_id, list(names))}. `{listed_by}` lists them")


def called_so(name: str, called: Mapping[str, str]) -> list[str]:
    """Return the ids of runs that have a name now, else of those that were launched under it.

    Args:
        called: what runs are called now, by id.
    """
    now = [run_id for run_id, present in called.items() if present == name]
    return now or [run_id for run_id in called if name_in(run_id) == name]


def nearest(typed: str, names: Sequence[str]) -> str:
    """Return names like what was typed, as the middle of a sentence; empty where there is none."""
    if not names:
        return "; that folder holds no runs"
    near = alike(typed, names)
    return f"; nearest: {', '.join(map(repr, near))}" if near else ""


def alike(typed: str, names: Sequence[str]) -> list[str]:
    """Return names like what was typed, the nearest first; none where a guess would most likely be wrong."""
    near = difflib.get_close_matches(typed, names, n=3, cutoff=0.6)
    # A race's runs are called as its arms, with a seed behind.
    return near or [name for name in names if len(typed) >= FEWEST_LETTERS and name.startswith(typed)][:3]


def is_path(given: str | Path, called: Iterable[str]) -> bool:
    """Return True for the path of a folder: a text with a slash, unless a run is called so.

    Args:
        called: what runs are called.
    """
    return not isinstance(given, str) or (
        os.sep in given and (os.path.isdir(os.path.expanduser(given)) or given not in called)
    )


def typed(run: str | Path, runs_dir: str | Path | None = None) -> tuple[str, str | Path | None]:
    """Id (or its beginning) and runs folder of what a user typed, which may be the path of a folder (:func:`is_path`).

    Args:
        runs_dir: the runs folder of an id; a path says its own.

    Raises:
        RunError: the path is that of a folder which is no run's, or it is neither a text nor a path.
    """
    if not isinstance(run, str | os.PathLike):
        raise RunError(f"{run!r:.60} is no run: give an id, the beginning of one, a name, or a folder's path")
    root = runs_root(runs_dir)
    if not is_path(run, (name_of(RunFolder(root / each)) for each in run_ids(root))):
        return str(run), runs_dir
    path = Path(os.path.abspath(Path(run).expanduser()))  # without the dots of "../runs/x", which `absolute` keeps
    if path.is_dir() and not any((path / name).exists() for name in ("recipe.json", "state.json")):
        raise RunError(f"no run '{path.name}' in {path.parent}: that folder has neither recipe.json nor state.json")
    return path.name, path.parent


def run_ids(root: Path) -> list[str]:
    """Return the run ids of a runs folder; none when there is no such folder."""
    try:
        # scandir knows folders without a stat per entry: tables read folders of thousands of runs every two seconds.
        with os.scandir(root) as entries:
            return [entry.name for entry in entries if is_run_id(entry.name) and entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
