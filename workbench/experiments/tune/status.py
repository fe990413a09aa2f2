"""How a tuning stands: read from its sweep and its race alone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from workbench.experiments.launching import refused, withdrawn
from workbench.experiments.race.plan import RacePlan
from workbench.experiments.race.status import Standing as RaceStanding
from workbench.experiments.race.status import standing as race_standing
from workbench.experiments.sweep.advance import look, plan_of, search
from workbench.experiments.sweep.plan import SweepPlan
from workbench.experiments.sweep.space import applied
from workbench.experiments.sweep.status import Standing as SweepStanding
from workbench.experiments.sweep.stepwise import Settings, Step
from workbench.experiments.tune.plan import TUNED, TuningPlan
from workbench.experiments.tune.tuning_folder import TuningFolder
from workbench.store.folder import read_object

if TYPE_CHECKING:
    from workbench.recipes.recipe import Recipe

Stage = Literal["tuning", "nothing paid", "tuned, not yet confirmed", "confirmed", "not confirmed"]


@dataclass(frozen=True)
class Standing:
    """A tuning as its stages tell.

    Attributes:
        sweep_plan, sweep: the first stage. steps: what was decided, in order.
        recipe: what is kept so far, on the text of results and with the seed that it had.
        changed: by path, the values before and now; empty where nothing was kept.
        race_plan, race: the second stage; None before it.
        stage: how far the claim is. cut_short: whether the search's part of the budget was spent before it was over.
    """

    sweep_plan: SweepPlan
    sweep: SweepStanding
    steps: list[Step]
    recipe: Recipe
    changed: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    race_plan: RacePlan | None = None
    race: RaceStanding | None = None
    stage: Stage = "tuning"
    cut_short: bool = False

    @property
    def going(self) -> int:
        """Runs that train or wait for their turn, of both stages."""
        return self.sweep.going + (self.race.going if self.race is not None else 0)

    @property
    def kept_point(self) -> int | None:
        """The point of what is kept; None before it has a score."""
        kept = [step.best.point for step in self.steps if step.kept]
        return kept[-1] if kept else (0 if self.steps else None)


def standing(plan: TuningPlan) -> Standing:
    """How a tuning stands now.

    Raises:
        RunError: a stage's folder cannot be read. RecipeError: of a choice that is not here.
    """
    sweep_plan, base = plan_of(plan.sweep), plan.base()
    sweep = look(plan.sweep, sweep_plan)
    found = search(sweep_plan, sweep)
    recipe = applied(base, found.current).recipe
    start = Settings.of(sweep_plan.recipe).start(sweep_plan.space)
    changed = {path: (start.get(path), value) for path, value in found.current.items() if start.get(path) != value}
    # One that was cancelled, or has failed, has decided nothing.
    over = plan.sweep.read_state()["status"] == "finished"
    decided = read_object(TuningFolder(TuningFolder.root(plan.runs_dir) / plan.id).evidence) if over else {}
    if decided:
        # Runs that it was decided by may have been deleted for good since.
        recipe = replace(plan, recipe=decided["recipe"]).base()
        changed = {path: (before, after) for path, (before, after) in decided["changed"].items()}
    cut_short = over and sweep.over and not found.over
    begun = Standing(sweep_plan, sweep, found.steps, recipe, changed, cut_short=cut_short)
    if not over or not plan.race.plan.is_file():
        stage: Stage = "tuning" if not over else "tuned, not yet confirmed" if changed else "nothing paid"
        return replace(begun, stage=stage)
    race_plan = RacePlan.read(plan.race)
    status = plan.race.read_state()["status"]
    race = race_standing(race_plan, refused(plan.race), withdrawn(plan.race), cancelled=status == "cancelled")
    better = race.verdicts[TUNED].verdict == "better"
    stage = "tuned, not yet confirmed" if status != "finished" else "confirmed" if better else "not confirmed"
    return replace(begun, race_plan=race_plan, race=race, stage=stage)
