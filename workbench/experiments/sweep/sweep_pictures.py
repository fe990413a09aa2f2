"""The pictures and the report's sections of a sweep."""

from __future__ import annotations

import math
from functools import partial
from html import escape

from workbench.base.text import plain
from workbench.experiments.snapshot import Drawing, wrapped_table
from workbench.experiments.sweep.importance import METHOD
from workbench.experiments.sweep.sweep_plan import SweepPlan
from workbench.experiments.sweep.sweep_words import SweepSnapshot, conditions
from workbench.experiments.words import UNITS
from workbench.plots.sweep import (
    Dot,
    SweepPicture,
    importance_figure,
    knob_figure,
    parallel_figure,
    pareto_figure,
    sweep_png,
)  # fmt: skip
from workbench.plots.sweep_tables import importance_table, knob_table, parallel_table, pareto_table
from workbench.plots.tables import choices_table

_FRONT = "A point per setting. The line joins those that no other beats in both."
_KNOB = (
    "Grey: single seeds. Large: their mean. Where the seeds of one setting spread as far as the settings do, the knob "
    "says nothing."
)


def picture_of(seen: SweepSnapshot) -> SweepPicture:
    """Return every point that has ended with a score."""
    dots = []
    for each in seen.now.points:
        share = each.point.share
        if each.status == "done" and math.isfinite(each.score) and share is not None:
            dots.append(Dot(
                each.point.index, each.point.label, each.point.values, each.score, each.scores, seen.seconds_of(each),
                share.memory_bytes, share.parameters,
            ))  # fmt: skip
    found, left_out = seen.shares()
    return SweepPicture(UNITS[seen.plan.score], dots, list(seen.plan.space), _logarithmic(seen.plan), found, METHOD,
                        left_out, seen.seconds_title)  # fmt: skip


def drawings(seen: SweepSnapshot) -> dict[str, Drawing]:
    """Return the pictures of a sweep by key, the most useful first: costs only where points differ in them."""
    picture = picture_of(seen)
    fronts = {
        f"pareto/{cost}": Drawing(f"score against {words}", partial(pareto_figure, picture, cost),
                                  partial(pareto_table, picture, cost), _FRONT)
        for cost, words in picture.costs.items() if picture.differs(cost)
    }  # fmt: skip
    knobs = {
        f"knob/{path}": Drawing(f"score against {plain(path)}", partial(knob_figure, picture, path),
                                partial(knob_table, picture, path), _KNOB)
        for path in picture.ranked_knobs
    }  # fmt: skip
    first = {key: each for key, each in fronts.items() if key == "pareto/seconds"}
    return {
        **first, **knobs, **fronts,
        "parallel/all": Drawing(
            "all knobs at once", partial(parallel_figure, picture), partial(parallel_table, picture),
            "A line per setting, through its knobs to its score. Drag along an axis to pick settings.",
        ),
        "importance/all": Drawing(
            "importance of knobs", partial(importance_figure, picture), partial(importance_table, picture),
            "How much of the order of the settings each knob explains by itself.",
        ),
    }  # fmt: skip


def png(seen: SweepSnapshot) -> bytes:
    """Draw what has ended without a browser; empty before anything has."""
    picture = picture_of(seen)
    return sweep_png(picture) if picture.dots else b""


def sections(seen: SweepSnapshot) -> dict[str, str]:
    """Return the report's sections before the pictures, by title, as HTML."""
    points = [each.point for each in seen.now.points]
    return {"Points": f"<p>{escape(conditions(seen.plan, points))}</p>{wrapped_table(*seen.table())}"}


def recipe_section(seen: SweepSnapshot) -> dict[str, str]:
    """Return the report's last section."""
    base = seen.plan.base(each.point for each in seen.now.points)
    return {"Recipe that all points start from": choices_table(base)}


def _logarithmic(plan: SweepPlan) -> list[str]:
    """List knobs of logarithmic ranges, ranges over a decade, and lists whose ends differ by four times."""
    found = []
    for path, knob in plan.space.items():
        numbers = [value for value in knob.values if isinstance(value, int | float) and not isinstance(value, bool)]
        wide = len(numbers) == len(knob.values) > 0 and min(numbers) > 0 and max(numbers) >= 4 * min(numbers)
        decade = not knob.values and knob.high >= 10 * knob.low > 0
        if knob.log or wide or decade:
            found.append(path)
    return found
