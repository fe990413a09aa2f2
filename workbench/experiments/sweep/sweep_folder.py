"""Where sweeps lie."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from workbench.experiments.experiment_folder import ExperimentFolder


class SweepFolder(ExperimentFolder):
    """The paths of one sweep."""

    noun: ClassVar[str] = "sweep"
    plural: ClassVar[str] = "sweeps"
    working: ClassVar[str] = "sweeping"
    package: ClassVar[str] = "workbench.experiments.sweep"

    @property
    def points(self) -> Path:
        """``points.jsonl``: the settings tried so far, in order, appended line by line."""
        return self.path / "points.jsonl"

    @property
    def rates(self) -> Path:
        """``rates.json``: of the machine by which points are sized; absent where that is the one at hand."""
        return self.path / "rates.json"
