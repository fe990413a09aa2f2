"""What a sweep is: a recipe, a space, a sampler and seeds, frozen before its first run; and its points."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.base.text import plain
from workbench.experiments.budget import Share, parse
from workbench.experiments.experiment_folder import append_json, json_objects
from workbench.experiments.plan import Plan, known
from workbench.experiments.sweep.space import Knob, Space, Values, label
from workbench.experiments.sweep.sweep_folder import SweepFolder
from workbench.experiments.words import duration
from workbench.store.folder import RunFolder

if TYPE_CHECKING:
    from workbench.recipes.recipe import Recipe


@dataclass(frozen=True)
class Cost:
    """What a sweep takes on this machine, forecast.

    Attributes:
        seconds: of everybody's waiting, not of processors. core_hours: of all runs; 0 on a GPU.
    """

    runs: int
    seconds: float
    core_hours: float


@dataclass(frozen=True)
class Point:
    """Settings that a sweep tries.

    Attributes:
        index: from 0, in the order in which they were drawn.
        drawn: as the sampler gave them. values: those that apply to the recipe.
        share: what its budget is, forecast. error: why it cannot be trained; empty where it can.
    """

    index: int
    drawn: Values
    values: Values
    share: Share | None = None
    error: str = ""

    @property
    def label(self) -> str:
        """Its values in one line."""
        return label(self.values)


@dataclass(frozen=True, repr=False, kw_only=True)
class SweepPlan(Plan):
    """A sweep as its folder keeps it.

    Attributes:
        recipe: as JSON. space: the knobs that it varies. sampler, seed: that draw the points; runs: how many points.
        budget: as asked; empty for the recipe's own. clock: see :mod:`workbench.experiments.budget`.
        early_stopping: the rule, empty for none. at_once: runs side by side.
        part_of: tag of the tuning that it is a stage of; empty else.
    """

    recipe: dict[str, Any]
    space: Space
    sampler: str
    runs: int
    seed: int
    budget: str
    clock: str
    early_stopping: str
    cost: Cost
    at_once: int
    part_of: str = ""

    def __repr__(self) -> str:
        return (f"<sweep of {plain(', '.join(self.space), 100)}: {self.runs} points, {self.cost.runs} runs, about "
                f"{duration(self.cost.seconds)}>")  # fmt: skip

    def base(self, points: Iterable[Point]) -> dict[str, Any]:
        """The recipe as JSON under the budget of its runs: that of all points where it is one, else as asked."""
        budgets = {(point.share.amount, point.share.unit) for point in points if point.share is not None}
        if len(budgets) != 1 and not self.budget:
            return self.recipe
        amount, unit = budgets.pop() if len(budgets) == 1 else parse(self.budget)
        return {**self.recipe, "budget": {**self.recipe["budget"], "amount": amount, "unit": unit}}

    def run_folder(self, point: Point, seed: int) -> RunFolder:
        """Where a run lies, or will; its id follows from the sweep, so that nothing is launched twice."""
        digest = hashlib.sha256(repr((self.id, point.index, seed)).encode()).hexdigest()[:10]
        return RunFolder(Path(self.runs_dir) / f"{self.id[:15]}-p{point.index}-s{seed}-{digest}")

    def title(self, point: Point, seed: int) -> str:
        """What lists call a run."""
        tail = f" seed {seed}" if len(self.seeds) > 1 else ""
        return f"{point.label[: 80 - len(tail)]}{tail}" or "as given"

    def recipe_of(self, point: Point, seed: int) -> Recipe:
        """What a run of a point trains. (Imports torch, through the choices.)

        Raises:
            RecipeError: the point cannot be trained, or the sweep is of another version.
        """
        from workbench.base.errors import RecipeError
        from workbench.recipes.recipe import Recipe

        if point.error or point.share is None:
            raise RecipeError(f"point {point.index} ({point.label}) cannot be trained: {point.error}")
        recipe = Recipe(**self.recipe).edited(point.values.items())
        budget = {"amount": point.share.amount, "unit": point.share.unit}
        return recipe.with_(name=self.title(point, seed), seed=seed, budget=budget)

    @classmethod
    def _parts(cls, raw: dict[str, Any]) -> dict[str, Any]:
        space = {path: Knob(**{**known(Knob, knob), "values": tuple(knob["values"])})
                 for path, knob in raw["space"].items()}  # fmt: skip
        return {"space": space, "cost": Cost(**known(Cost, raw["cost"]))}


def add_points(folder: SweepFolder, points: Iterable[Point]) -> None:
    """Append points to those of a sweep.

    Raises:
        OSError: the disk is full or the folder is gone.
    """
    append_json(folder.points, *map(asdict, points))


def read_points(folder: SweepFolder) -> list[Point]:
    """The points drawn so far, in order; damaged ones are left out."""
    found: dict[int, Point] = {}
    for raw in json_objects(folder.points):
        try:
            share = raw["share"] and Share(**known(Share, raw["share"]))
            found[int(raw["index"])] = Point(**{**known(Point, raw), "share": share})
        except (KeyError, TypeError, ValueError):
            continue
    return [found[index] for index in sorted(found)]
