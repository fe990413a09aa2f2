"""What a tuning is: a recipe, a total budget and how it is divided, frozen before its first run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from workbench.experiments.plan_file import known, read_plan
from workbench.experiments.words import duration
from workbench.racing.race_folder import RaceFolder
from workbench.sweeping.sweep_folder import SweepFolder
from workbench.tuning.tuning_folder import TuningFolder

if TYPE_CHECKING:
    from workbench.recipe import Recipe

SCHEMA_VERSION = 1
Score = Literal["nats", "bits_per_byte"]
BEFORE, TUNED = "before", "tuned"
"""Arms of its race."""


@dataclass(frozen=True)
class Division:
    """The total budget, and what its two stages take of it on this machine, forecast.

    Attributes:
        seconds: of everybody's waiting, in all. points: settings that the first stage may try.
        tuning_runs, tuning_seconds, race_runs, race_seconds: of each stage, at most.
        core_hours: of both; 0 on a GPU.
    """

    seconds: float
    points: int
    tuning_runs: int
    tuning_seconds: float
    race_runs: int
    race_seconds: float
    core_hours: float


@dataclass(frozen=True, repr=False)
class TuningPlan:
    """A tuning as its folder keeps it; the space that it searches stands in the plan of its sweep.

    Attributes:
        recipe: that it begins from, as JSON. budget: in all, as asked. each: budget of each run.
        seeds: that settings are chosen on. race_seeds: that the race is judged on; none of them is among the former.
        score: what is compared. division: of the budget.
        warnings: what was said before it began.
        runs_dir, folder: the runs folder, and the working folder in which it began; absolute.
        version: of the package that began it.
    """

    id: str
    name: str
    recipe: dict[str, Any]
    budget: str
    each: str
    seeds: tuple[int, ...]
    race_seeds: tuple[int, ...]
    score: Score
    division: Division
    warnings: tuple[str, ...]
    runs_dir: str
    folder: str
    version: str
    schema_version: int = SCHEMA_VERSION

    def __repr__(self) -> str:
        parts = self.division
        return (f"<tuning: at most {parts.points} settings and a race of {len(self.race_seeds)} seeds, "
                f"{parts.tuning_runs + parts.race_runs} runs, about "
                f"{duration(parts.tuning_seconds + parts.race_seconds)}>")  # fmt: skip

    @property
    def sweep(self) -> SweepFolder:
        """The first stage: settings, on tuning text."""
        return SweepFolder(SweepFolder.root(self.runs_dir) / self.id)

    @property
    def race(self) -> RaceFolder:
        """The second: what was found against what it began from, on fresh seeds and the held-out text of results."""
        return RaceFolder(RaceFolder.root(self.runs_dir) / self.id)

    def base(self) -> Recipe:
        """The recipe that it begins from. (Imports torch, through the choices.)

        Raises:
            RecipeError: of another version, or of an engine or choice that is not here.
        """
        from workbench.recipe import Recipe

        return Recipe(**self.recipe)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; :meth:`read` reads it back."""
        return asdict(self)

    @classmethod
    def read(cls, folder: TuningFolder) -> TuningPlan:
        """The plan of a tuning's folder, also of one that another version began.

        Raises:
            RunError: ``tuning.json`` is damaged, or of a newer form than this version knows.
        """

        def built(raw: dict[str, Any]) -> TuningPlan:
            several = {key: tuple(raw[key]) for key in ("seeds", "race_seeds", "warnings")}
            return cls(**{**known(cls, raw), **several, "division": Division(**known(Division, raw["division"]))})

        return read_plan(folder, SCHEMA_VERSION, built)
