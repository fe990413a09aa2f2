"""From what people call runs to the runs: handles, ids, names and globs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from workbench.base.errors import RunError
from workbench.client.run import Run
from workbench.client.run_list import RunList, runs
from workbench.store.find import called_so, is_path, nearest
from workbench.store.folder import RunFolder

_GLOB = frozenset("*?[")


def select(given: Iterable[Any], runs_dir: str | Path | None = None) -> list[Run]:
    """Runs in the order in which they are given, each once; those that one text stands for, oldest first.

    Args:
        given: runs, folders of runs, ids or unique beginnings of them, names (of all runs that are called so
            now, else were launched so), globs over ids and names (``"bert*"``), and lists of these.
        runs_dir: the runs folder of ids, names and globs; else ``$WORKBENCH_RUNS``, else ``./runs``.

    Raises:
        RunError: nothing is given, or it names no run; the message has the nearest.
    """
    found = list(dict.fromkeys(run for each in given for run in _runs(each, runs_dir)))
    if not found:
        known = runs(runs_dir)
        holds = f"{len(known)}, see `wb.runs()` or `workbench runs`" if known else "none"
        raise RunError(f"no run is given; {known.root} holds {holds}. Launch one, or name another folder with runs_dir")
    return found


def _runs(given: Any, runs_dir: str | Path | None) -> Iterator[Run]:
    if isinstance(given, Run):
        yield given
    elif isinstance(given, RunFolder):
        yield Run(given)
    elif isinstance(given, str | Path):
        known = runs(runs_dir)
        yield from [Run(given)] if is_path(given, (run.name for run in known)) else _called(str(given), known)
    elif isinstance(given, Iterable):
        for each in given:
            yield from _runs(each, runs_dir)
    else:
        raise RunError(
            f"{given!r} is no run: give what wb.launch or wb.runs() returned, an id, a name, or a glob such as 'bert*'"
        )


def _called(text: str, known: RunList) -> list[Run]:
    pattern = bool(_GLOB & set(text))
    so = {text, *called_so(text, {run.id: run.name for run in known})}
    found = [run for run in reversed(known) if run.id in so]
    if not found and pattern:
        found = [run for run in reversed(known) if fnmatchcase(run.id, text) or fnmatchcase(run.name, text)]
    if not found and text and not pattern:
        found = [run for run in reversed(known) if run.id.startswith(text)]
        if len(found) > 1:
            raise RunError(
                f"'{text}' begins {len(found)} run ids, {', '.join(run.id for run in found[-5:])}; write more of it, "
                f"or '{text}*' for all of them"
            )
    if not found:
        names = list(dict.fromkeys(name for run in known for name in (run.name, run.id)))
        raise RunError(
            f"no run in {known.root} has the id or name '{text}'{nearest(text, names)}. `workbench runs` lists them"
        )
    return found
