"""``wb.experiment``: open any race, sweep or tuning that this or any other process started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workbench.base.errors import RunError
from workbench.base.text import plain
from workbench.client.run import Run
from workbench.experiments.experiment import Experiment
from workbench.experiments.experiment_folder import ExperimentFolder
from workbench.experiments.race.race import Race
from workbench.experiments.sweep.sweep import Sweep
from workbench.experiments.tune.tune import Tuning
from workbench.store.find import alike
from workbench.store.folder import runs_root

Held = Experiment[Any, Any]
KINDS: dict[str, type[Held]] = {held.kind.noun: held for held in (Tuning, Race, Sweep)}
"""By noun. Tunings first: the sweep and the race of one have its id, and it stands for them."""


def experiment(which: str | Path, runs_dir: str | Path | None = None) -> Race | Sweep | Tuning:
    """The race, sweep or tuning with this id.

    Args:
        which: its id, a unique prefix of it, its name, or its folder.
        runs_dir: the runs folder, beside which they are stored; else ``$WORKBENCH_RUNS``, else ``./runs``.

    Raises:
        RunError: none matches, or several do; the message names them, or what is alike, or the latest.

    Example:
        >>> wb.experiment("20260131-0815").cancel()  # doctest: +SKIP
    """
    if found := matching(which, runs_dir):
        return _the_one(which, found)  # type: ignore[return-value]
    raise RunError(f"no race, sweep or tuning '{which}' beside {runs_root(runs_dir)}; "
                   f"{_others(str(which), runs_dir) or 'the latest: none'}")  # fmt: skip


def _others(typed: str, runs_dir: str | Path | None) -> str:
    """What may have been meant: experiments of names like what was typed, else the latest of each kind."""
    known: dict[str, ExperimentFolder] = {}
    for kind in KINDS.values():
        for each in kind.kind.ids(runs_dir):
            # The sweep and the race of a tuning have its id, and it stands for them.
            known.setdefault(each, kind.kind(kind.kind.root(runs_dir) / each))
    called = {folder.name: folder for folder in known.values()}
    if near := alike(typed, list(called)):
        return "nearest: " + ", ".join(f"{called[name].noun} '{plain(name)}' ({called[name].id})" for name in near)
    latest = {folder.noun: f"{folder.noun} {folder.id}" for folder in known.values()}
    return f"the latest: {', '.join(latest.values())}" if latest else ""


def held(which: str | Path, runs_dir: str | Path | None = None) -> Held | Run:
    """The race, sweep or tuning of an id, else the run of it.

    Raises:
        RunError: neither, or several; the message names them, or what is alike.
    """
    # Runs last: the beginning of a race's id may begin those of its runs, too.
    if found := matching(which, runs_dir):
        return _the_one(which, found)
    try:
        return Run(which, runs_dir)
    except RunError as error:
        raise RunError(f"{error}; nor is there a race, sweep or tuning of that name") from None


def _the_one(which: str | Path, found: list[Held]) -> Held:
    if len(found) == 1:
        return found[0]
    named = ", ".join(f"{each.folder.noun} {each.id}" for each in found[-5:])
    raise RunError(f"'{which}' stands for {len(found)} experiments: {named}; write more of its id")


def noun_of(found: Held | Run) -> str:
    """``run``, ``race``, ``sweep`` or ``tuning``."""
    return "run" if isinstance(found, Run) else found.kind.noun


def matching(which: str | Path, runs_dir: str | Path | None = None) -> list[Held]:
    """All that a word stands for, by path, id, beginning of an id or name."""
    found: dict[str, Held] = {}
    for kind in KINDS.values():
        for folder in kind.kind.matching(which, runs_dir):
            found.setdefault(folder.id, kind(folder))
    return list(found.values())
