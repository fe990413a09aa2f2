"""What a tuning is: a recipe, a total budget and how it is divided, frozen before its first run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.experiments.plan import Plan, known
from workbench.experiments.race.race_folder import RaceFolder
from workbench.experiments.sweep.sweep_folder import SweepFolder
from workbench.experiments.words import duration

if TYPE_CHECKING:
    from workbench.recipes.recipe import Recipe

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


@dataclass(frozen=True, repr=False, kw_only=True)
class TuningPlan(Plan):
    """A tuning as its folder keeps it; the space that it searches stands in the plan of its sweep.

    Attributes:
        recipe: that it begins from, as JSON. budget: in all, as asked. each: budget of each run.
        seeds: that settings are chosen on. race_seeds: that the race is judged on; none of them is among the former.
        division: of the budget.
    """

    recipe: dict[str, Any]
    budget: str
    each: str
    race_seeds: tuple[int, ...]
    division: Division

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
        from workbench.recipes.recipe import Recipe

        return Recipe(**self.recipe)

    @classmethod
    def _parts(cls, raw: dict[str, Any]) -> dict[str, Any]:
        return {"division": Division(**known(Division, raw["division"]))}
