"""Where races lie."""

from __future__ import annotations

from typing import ClassVar

from workbench.experiments.experiment_folder import ExperimentFolder


class RaceFolder(ExperimentFolder):
    """The paths of one race."""

    noun: ClassVar[str] = "race"
    plural: ClassVar[str] = "races"
    working: ClassVar[str] = "racing"
    package: ClassVar[str] = "workbench.experiments.race"
