"""From how a sweep stands to what its pictures show."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from workbench.base.text import plain
from workbench.experiments.shown import Pick, Shown
from workbench.experiments.sweep.importance import METHOD
from workbench.experiments.sweep.plan import SweepPlan
from workbench.experiments.sweep.results import seconds_of, seconds_title, shares
from workbench.experiments.sweep.status import PointStanding, Standing
from workbench.experiments.sweep.tables import table_html
from workbench.experiments.words import UNITS
from workbench.plots.sweep import Dot, SweepPicture, importance_figure, knob_figure, parallel_figure, pareto_figure
from workbench.plots.sweep_tables import importance_table, knob_table, parallel_table, pareto_table

if TYPE_CHECKING:
    import plotly.graph_objects as go


_FIRST_LINES = 3
"""How far it is, the best point, and what that is worth."""


def picture_of(plan: SweepPlan, now: Standing) -> SweepPicture:
    """Every point that has ended with a score."""
    dots = []
    for each in now.points:
        share = each.point.share
        if each.status == "done" and math.isfinite(each.score) and share is not None:
            dots.append(Dot(
                each.point.index, each.point.label, each.point.values, each.score, each.scores, seconds_of(plan, each),
                share.memory_bytes, share.parameters,
            ))  # fmt: skip
    found, left_out = shares(plan, now)
    return SweepPicture(UNITS[plan.score], dots, list(plan.space), _logarithmic(plan), found, METHOD, left_out,
                        seconds_title(plan))  # fmt: skip


def shown(plan: SweepPlan, now: Standing, status: str, lines: Sequence[str]) -> Shown:
    """One reading of a sweep, for a page that draws it live."""
    picture = picture_of(plan, now)
    # By what is asked first: what is worth paying for, then each knob, then all of them.
    draw: dict[str, tuple[str, Callable[[], go.Figure], Callable[[], str]]] = {}
    for cost, words in picture.costs.items():
        draw[f"pareto/{cost}"] = (f"score against {words}", partial(pareto_figure, picture, cost),
                                  partial(pareto_table, picture, cost))  # fmt: skip
    for path in plan.space:
        draw[f"knob/{path}"] = (f"score against {plain(path)}", partial(knob_figure, picture, path),
                                partial(knob_table, picture, path))  # fmt: skip
    draw["parallel/all"] = "all knobs at once", partial(parallel_figure, picture), partial(parallel_table, picture)
    draw["importance/all"] = (
        "importance of knobs", partial(importance_figure, picture), partial(importance_table, picture)
    )  # fmt: skip
    return Shown(
        f"Sweep {plain(plan.name, 60)}", status, lines[:_FIRST_LINES], table_html(plan, now),
        {key: title for key, (title, *_) in draw.items()}, lambda key: draw[key][1](), lambda key: draw[key][2](),
        lines[_FIRST_LINES:], [Pick(f"{each.point.index}", _title(each, now.best)) for each in now.points],
        None if now.best is None else f"{now.best}", now.going,
    )  # fmt: skip


def _title(each: PointStanding, best: int | None) -> str:
    score = f": {each.score:.3f}" if each.status == "done" else f" ({each.status})"
    return f"{each.point.index}  {plain(each.point.label, 60)}{score}{' - best' * (each.point.index == best)}"


def _logarithmic(plan: SweepPlan) -> list[str]:
    """Knobs of logarithmic ranges, ranges over a decade, and lists whose largest number is four times the least."""
    found = []
    for path, knob in plan.space.items():
        numbers = [value for value in knob.values if isinstance(value, int | float) and not isinstance(value, bool)]
        wide = len(numbers) == len(knob.values) > 0 and min(numbers) > 0 and max(numbers) >= 4 * min(numbers)
        decade = not knob.values and knob.high >= 10 * knob.low > 0
        if knob.log or wide or decade:
            found.append(path)
    return found
