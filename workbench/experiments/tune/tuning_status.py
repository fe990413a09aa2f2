"""The state of a tuning, read from its sweep and its race alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from workbench.experiments.experiment_folder import TuningFolder
from workbench.experiments.race.race import Race
from workbench.experiments.race.race_words import RaceSnapshot
from workbench.experiments.readings import Reading
from workbench.experiments.sweep.space import applied
from workbench.experiments.sweep.stepwise import Settings, Step
from workbench.experiments.sweep.sweep import Sweep
from workbench.experiments.sweep.sweep_status import search
from workbench.experiments.sweep.sweep_words import SweepSnapshot
from workbench.experiments.tune.tuning_plan import TUNED, TuningPlan
from workbench.store.folder import read_object

if TYPE_CHECKING:
    from workbench.recipes.recipe import Recipe

Stage = Literal["tuning", "nothing paid", "tuned, not yet confirmed", "confirmed", "not confirmed"]


@dataclass(frozen=True)
class TuningStatus:
    """A tuning as its stages tell.

    Attributes:
        sweep: the first stage. steps: its decisions, in order.
        recipe: what is kept so far, on the text of results and with the seed that it had.
        changed: by path, the values before and now; empty where nothing was kept.
        race: the second stage; None before it.
        stage: how far the claim is. cut_short: the search's part of the budget was spent before it was over.
    """

    sweep: SweepSnapshot
    steps: list[Step]
    recipe: Recipe
    changed: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    race: RaceSnapshot | None = None
    stage: Stage = "tuning"
    cut_short: bool = False

    @property
    def runs(self) -> Sequence[tuple[Any, Reading]]:
        """All runs of both stages with their readings."""
        return [*self.sweep.now.runs, *(self.race.now.runs if self.race is not None else ())]

    @property
    def kept_point(self) -> int | None:
        """The point of what is kept; None before it has a score."""
        kept = [step.best.point for step in self.steps if step.kept]
        return kept[-1] if kept else (0 if self.steps else None)


def status_of(plan: TuningPlan) -> TuningStatus:
    """Read how a tuning stands now.

    Raises:
        RunError: a stage's folder cannot be read. RecipeError: of a choice that is not here.
    """
    sweep = Sweep(plan.sweep).glance()
    space = sweep.plan.space
    found = search(sweep.plan, sweep.now)
    recipe = applied(plan.base(), found.current).recipe
    start = Settings.of(sweep.plan.recipe).start(space)
    changed = {path: (start.get(path), value) for path, value in found.current.items() if start.get(path) != value}
    # One that was cancelled, or has failed, has decided nothing.
    over = sweep.status == "finished"
    decided = read_object(TuningFolder(TuningFolder.root(plan.runs_dir) / plan.id).evidence) if over else {}
    if decided:
        # Runs that it was decided by may have been deleted for good since.
        recipe = replace(plan, recipe=decided["recipe"]).base()
        changed = {path: (before, after) for path, (before, after) in decided["changed"].items()}
    begun = TuningStatus(sweep, found.steps, recipe, changed, cut_short=over and sweep.now.over and not found.over)
    if not over or not plan.race.plan.is_file():
        stage: Stage = "tuning" if not over else "tuned, not yet confirmed" if changed else "nothing paid"
        return replace(begun, stage=stage)
    race = Race(plan.race).glance()
    better = race.now.verdicts[TUNED].verdict == "better"
    stage = "tuned, not yet confirmed" if race.status != "finished" else "confirmed" if better else "not confirmed"
    return replace(begun, race=race, stage=stage)
