"""Experiments as the table of runs knows them: by the tag of their runs and the moment that these begin with."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import RunError, WorkbenchError
from workbench.runs.catalogue.experiment_name import experiment_name

if TYPE_CHECKING:
    from workbench.experiments.experiment import Experiment


def name_of(experiment: Experiment[Any, Any]) -> str:
    """What the table of runs calls an experiment: the tag of its runs, and the moment that their ids begin with."""
    return experiment_name(experiment.folder.tag, experiment.id)


def find_experiment(name: str, runs_dir: str | Path | None = None) -> Experiment[Any, Any]:
    """The race, sweep or tuning that :func:`name_of` names.

    Raises:
        RunError: it is not there (any more).
    """
    # Here: a table in which no experiment stands does without all of their modules.
    from workbench.opening import KINDS

    tag, _, begun = name.rpartition(" ")
    held = KINDS.get(tag.partition(":")[0])
    if held is None:
        raise RunError(f"'{name}' is no race, sweep or tuning")
    return held(held.kind.of_runs(tag, begun, runs_dir))


class Briefs:
    """What each experiment of a listing says so far; read again only where one of its runs has changed."""

    def __init__(self, runs_dir: str | Path) -> None:
        self._runs_dir = runs_dir
        self._known: dict[str, tuple[list[Any], str]] = {}

    def of(self, rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
        """Their words by :func:`name_of`; of those alone that are there.

        Args:
            rows: of a listing (:mod:`workbench.runs.catalogue.summary`).
        """
        runs: dict[str, list[Any]] = {}
        for row in rows:
            if name := row["experiment"]:
                runs.setdefault(name, []).append((row["id"], row["status"], row["heldout_loss"]))
        for name, marks in runs.items():
            if name not in self._known or self._known[name][0] != marks:
                self._known[name] = marks, self._read(name)
        self._known = {name: known for name, known in self._known.items() if name in runs}
        return {name: brief for name, (_, brief) in self._known.items() if brief}

    def _read(self, name: str) -> str:
        # One whose folder is gone, or whose recipes are of another version, has nothing to say; its runs still stand.
        with contextlib.suppress(WorkbenchError, OSError):
            return find_experiment(name, self._runs_dir).brief
        return ""
