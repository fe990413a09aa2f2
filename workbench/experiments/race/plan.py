"""What a race is: arms, seeds, budgets and looks, frozen before its first run; and the runs that follow from it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.base.text import plain
from workbench.experiments.budget import Share
from workbench.experiments.plan import Plan, known
from workbench.experiments.race.sequential import Design
from workbench.experiments.words import duration

if TYPE_CHECKING:
    from workbench.recipes.recipe import Recipe


class Entry(NamedTuple):
    """One run of a race.

    Attributes:
        ratio: of the race's budget; the baseline alone also has others.
    """

    arm: str
    seed: int
    ratio: float = 1.0

    @property
    def title(self) -> str:
        """What lists call the run."""
        return f"{self.arm}{'' if self.ratio == 1 else f' {self.ratio:g}x'} seed {self.seed}"


@dataclass(frozen=True)
class Cost:
    """What a race takes on this machine, forecast.

    Attributes:
        runs, seconds: if it goes on to its last seed; ``seconds`` of everybody's waiting, not of processors.
        core_hours: of all runs; 0 on a GPU.
        first_runs, first_seconds: if all is decided at the first look.
    """

    runs: int
    seconds: float
    core_hours: float
    first_runs: int
    first_seconds: float


@dataclass(frozen=True, repr=False, kw_only=True)
class RacePlan(Plan):
    """A race as its folder keeps it.

    Attributes:
        arms: recipes as JSON, under the race's budget, by name.
        baseline: the arm that the others are held against.
        seeds: paired over the arms. margin: of equivalence, nats.
        reference: ratios of the budget at which the baseline is trained, too.
        budget, clock: as asked. shares: what that is for each arm.
        at_once: runs side by side.
        part_of: tag of the tuning that it is a stage of; empty else.
        initial: by seed, the checkpoint whose weights all arms begin with; empty where seeds draw them.
    """

    arms: dict[str, dict[str, Any]]
    baseline: str
    design: Design
    margin: float
    reference: tuple[float, ...]
    budget: str
    clock: str
    shares: dict[str, Share]
    cost: Cost
    at_once: int
    part_of: str = ""
    initial: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        most = "at most " if len(self.design.looks) > 1 else ""
        return (f"<race of {plain(' and '.join(self.arms), 100)}: {most}{len(self.seeds)} seeds, {self.cost.runs} "
                f"runs, about {duration(self.cost.seconds)}>")  # fmt: skip

    @property
    def others(self) -> list[str]:
        """The arms that are held against the baseline."""
        return [arm for arm in self.arms if arm != self.baseline]

    def entries(self, seeds: int, arms: Iterable[str]) -> list[Entry]:
        """The runs that a look at so many seeds needs: seed by seed, the baseline first, its other budgets last."""
        raced = [self.baseline, *(arm for arm in arms if arm != self.baseline)]
        return [
            entry
            for seed in self.seeds[:seeds]
            for entry in (
                *(Entry(arm, seed) for arm in raced),
                *(Entry(self.baseline, seed, ratio) for ratio in self.reference),
            )
        ]

    def run_id(self, entry: Entry) -> str:
        """The id of an entry's run: it follows from the race, so that nothing is launched twice."""
        slug = re.sub(r"[^a-z0-9]+", "-", entry.arm.lower()).strip("-")[:20].strip("-") or "arm"
        digest = hashlib.sha256(repr((self.id, *entry)).encode()).hexdigest()[:10]
        return f"{self.id[:15]}-{slug}-s{entry.seed}-{digest}"

    def recipe(self, entry: Entry) -> Recipe:
        """What an entry's run trains. (Imports torch, through the choices.)

        Raises:
            RecipeError: of another version, or of an engine or choice that is not here.
        """
        from workbench.recipes.recipe import Recipe

        recipe = Recipe(**self.arms[entry.arm])
        amount = recipe.budget.amount * entry.ratio
        amount = float(max(1, round(amount))) if recipe.budget.unit != "seconds" else amount
        return recipe.with_(name=entry.title[:80], seed=entry.seed, budget={"amount": amount})

    @classmethod
    def _parts(cls, raw: dict[str, Any]) -> dict[str, Any]:
        design = known(Design, raw["design"])
        return {
            "design": Design(tuple(design["looks"]), design["alpha"], tuple(design["critical"])),
            "shares": {arm: Share(**known(Share, share)) for arm, share in raw["shares"].items()},
            "cost": Cost(**known(Cost, raw["cost"])),
        }
