"""Experiments as the table of runs knows them: by the tag of their runs and the moment that these begin with."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.base.errors import RunError, WorkbenchError
from workbench.client.summary import experiment_name

if TYPE_CHECKING:
    from workbench.experiments.experiment import Experiment
    from workbench.experiments.experiment_folder import ExperimentFolder


def name_of(experiment: Experiment[Any, Any]) -> str:
    """Return the key of an experiment in the table: the tag of its runs and the moment that their ids begin with."""
    return experiment_name(experiment.folder.tag, experiment.id)


def find_experiment(name: str, runs_dir: str | Path | None = None) -> Experiment[Any, Any]:
    """Return the race, sweep or tuning that :func:`name_of` names.

    Raises:
        RunError: it is not there (any more).
    """
    # Here: a table in which no experiment stands does without all of their modules.
    from workbench.experiments.open import KINDS

    tag, _, begun = name.rpartition(" ")
    held = KINDS.get(tag.partition(":")[0])
    if held is None:
        raise RunError(f"'{name}' is no race, sweep or tuning")
    return held(held.kind.of_runs(tag, begun, runs_dir))


class _Said(NamedTuple):
    """The words of an experiment, and the stamps of the runs and the folder that they were made from."""

    marks: list[Any]
    folder: ExperimentFolder | None
    status: str
    brief: str

    @property
    def changed(self) -> bool:
        """Return whether it goes on no more, or again, or is gone; cancelling may change none of its runs."""
        return self.folder is not None and self.folder.read_state()["status"] != self.status


class Briefs:
    """The words of each experiment of a listing; read again only where it, or one of its runs, has changed."""

    def __init__(self, runs_dir: str | Path) -> None:
        self._runs_dir = runs_dir
        self._known: dict[str, _Said] = {}

    def of(self, rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
        """Return their words by :func:`name_of`; of those alone that are there.

        Args:
            rows: of a listing (:mod:`workbench.client.summary`).
        """
        runs: dict[str, list[Any]] = {}
        for row in rows:
            if name := row["experiment"]:
                runs.setdefault(name, []).append((row["id"], row["status"], row["heldout_loss"]))
        for name, marks in runs.items():
            known = self._known.get(name)
            if known is None or known.marks != marks or known.changed:
                self._known[name] = self._read(name, marks)
        self._known = {name: known for name, known in self._known.items() if name in runs}
        return {name: known.brief for name, known in self._known.items() if known.brief}

    def _read(self, name: str, marks: list[Any]) -> _Said:
        folder, status = None, ""
        # One whose folder is gone, or whose recipes are of another version, has nothing to say; its runs still stand.
        with contextlib.suppress(WorkbenchError, OSError):
            found = find_experiment(name, self._runs_dir)
            folder, status = found.folder, found.folder.read_state()["status"]
            return _Said(marks, folder, status, found.brief)
        return _Said(marks, folder, status, "")
