"""The points of a sweep: settings with their share of the budget, in a file that grows line by line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from workbench.base.errors import RecipeError
from workbench.experiments.budget import Share, parse, share_of, shared
from workbench.experiments.experiment_folder import SweepFolder, append_json, json_objects
from workbench.experiments.plan import known
from workbench.experiments.sweep.early_stopping import why_not
from workbench.experiments.sweep.space import Values, applied, label


@dataclass(frozen=True)
class Point:
    """Settings that a sweep tries.

    Attributes:
        index: from 0, in the order in which they were drawn.
        drawn: by the sampler. values: those that apply to the recipe.
        share: its budget, forecast. error: why it cannot be trained; empty where it can.
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


class Job(NamedTuple):
    """One run of a sweep."""

    point: Point
    seed: int


def key_of(recipe: Any, drawn: Values) -> str:
    """Return a key that tells settings apart: the values that apply to the recipe, or all of them."""
    try:
        return json.dumps(applied(recipe, drawn).values, sort_keys=True)
    except RecipeError:
        return json.dumps(drawn, sort_keys=True)


def point_of(plan: Any, recipe: Any, index: int, drawn: Values, rates: Any = None) -> Point:
    """Return a point of a :class:`SweepPlan` with its share of the budget, or with why it cannot be trained."""
    from workbench.forecasting.forecast import forecast

    def ahead(each: Any) -> Any:
        return forecast(each, rates=rates)

    values = drawn
    try:
        whole, values = applied(recipe, drawn)
        share = shared(whole, parse(plan.budget), plan.clock, ahead)[1] if plan.budget else share_of(whole, ahead)
        why = why_not(whole, share, list(plan.space)) if plan.early_stopping else ""
        return Point(index, drawn, values, share, why and f"no early stopping: {why}")
    except RecipeError as error:
        return Point(index, drawn, values, error=str(error))


def add_points(folder: SweepFolder, points: Iterable[Point]) -> None:
    """Append points to those of a sweep.

    Raises:
        OSError: the disk is full or the folder is gone.
    """
    append_json(folder.points, *map(asdict, points))


def read_points(folder: SweepFolder) -> list[Point]:
    """Read the points drawn so far, in order, without damaged ones."""
    found: dict[int, Point] = {}
    for raw in json_objects(folder.points):
        try:
            share = raw["share"] and Share(**known(Share, raw["share"]))
            found[int(raw["index"])] = Point(**{**known(Point, raw), "share": share})
        except (KeyError, TypeError, ValueError):
            continue
    return [found[index] for index in sorted(found)]
