"""``wb.experiment``: open any race, sweep or tuning that this or any other process started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workbench.base.errors import RunError
from workbench.client.run import Run
from workbench.experiments.experiment import Experiment
from workbench.experiments.experiment_folder import KINDS as FOLDERS
from workbench.experiments.experiment_folder import find_all, find_one
from workbench.experiments.finetune.finetune import Finetuning
from workbench.experiments.race.race import Race
from workbench.experiments.sweep.sweep import Sweep
from workbench.experiments.tune.tune import Tuning

Held = Experiment[Any, Any]
KINDS: dict[str, type[Held]] = {held.kind.noun: held for held in (Tuning, Race, Sweep, Finetuning)}
"""By noun."""


def experiment(which: str | Path, runs_dir: str | Path | None = None) -> Race | Sweep | Tuning | Finetuning:
    """Open the race, sweep or tuning with this id.

    Args:
        which: its id, a unique prefix of it, its name, or its folder.
        runs_dir: the runs folder, beside which they are stored; else ``$WORKBENCH_RUNS``, else ``./runs``.

    Raises:
        RunError: none matches, or several do; the message names them, or what is alike, or the latest.

    Example:
        >>> wb.experiment("20260131-0815").cancel()  # doctest: +SKIP
    """
    folder = find_one(which, FOLDERS, runs_dir)
    return KINDS[folder.noun](folder)  # type: ignore[return-value]


def held(which: str | Path, runs_dir: str | Path | None = None) -> Held | Run:
    """Open the race, sweep or tuning of an id, else the run of it.

    Raises:
        RunError: neither, or several; the message names them, or what is alike.
    """
    # Runs last: the beginning of a race's id may begin those of its runs, too.
    if find_all(which, FOLDERS, runs_dir):
        return experiment(which, runs_dir)
    try:
        return Run(which, runs_dir)
    except RunError as error:
        raise RunError(f"{error}; nor is there a race, sweep or tuning of that name") from None


def noun_of(found: Held | Run) -> str:
    """Return ``run``, ``race``, ``sweep`` or ``tuning``."""
    return "run" if isinstance(found, Run) else found.kind.noun


def matching(which: str | Path, runs_dir: str | Path | None = None) -> list[Held]:
    """Open all that a word names, by path, id, beginning of an id or name."""
    return [KINDS[folder.noun](folder) for folder in find_all(which, FOLDERS, runs_dir)]
