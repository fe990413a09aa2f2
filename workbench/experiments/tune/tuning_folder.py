"""Where tunings lie."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from workbench.experiments.experiment_folder import ExperimentFolder


class TuningFolder(ExperimentFolder):
    """The paths of one tuning; its sweep and its race lie among all others, under its own id."""

    noun: ClassVar[str] = "tuning"
    plural: ClassVar[str] = "tunings"
    verb: ClassVar[str] = "tune"
    working: ClassVar[str] = "tuning"
    package: ClassVar[str] = "workbench.experiments.tune"

    @property
    def evidence(self) -> Path:
        """``evidence.json``: every setting that was tried, what was kept and why, the race; replaced whole."""
        return self.path / "evidence.json"
