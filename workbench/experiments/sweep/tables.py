"""The points of a sweep as a table: text for terminals, HTML for cells and reports."""

from __future__ import annotations

import math

from workbench.base.fields import as_typed
from workbench.base.text import UNKNOWN, aligned, count, decimal, plain, share_done
from workbench.experiments.sweep.plan import SweepPlan
from workbench.experiments.sweep.results import fronts, rows, seconds_title
from workbench.experiments.sweep.sentences import ON_FLOOR
from workbench.experiments.sweep.status import Standing
from workbench.experiments.words import UNITS
from workbench.plots.forecast_facts import bytes_words
from workbench.plots.static import inline_table


def table(plan: SweepPlan, now: Standing) -> tuple[list[str], list[list[str]]]:
    """Titles and rows of text, the best point first, those without a score in their order behind."""
    found = rows(plan, now)
    kept = fronts(found)
    titles = ["point", *plan.space, f"score ({UNITS[plan.score]})", "seeds", seconds_title(plan), "memory, forecast",
              "parameters", "front", "state"]  # fmt: skip
    lines = []
    for row in sorted(
        found, key=lambda row: (row["status"] != "done", math.inf if row["score"] is None else row["score"])
    ):
        spread = "" if row["spread"] is None else f" ± {row['spread']:.3f}"
        on = ", ".join(cost.removesuffix("_bytes") for cost, points in kept.items() if row["point"] in points)
        place = now.points[row["point"]]
        state = f"{place.status} {share_done(place.progress)}" if place.status == "going" else place.status
        floor = f", {ON_FLOOR}" if row["left_floor"] is False else ""
        best = " (best, on its own score)" if row["point"] == now.best else ""
        lines.append([
            str(row["point"]), *(UNKNOWN if row[path] is None else plain(as_typed(row[path])) for path in plan.space),
            decimal(row["score"], 3) + spread, str(len(row["scores"])), decimal(row["seconds"], 1),
            bytes_words(row["memory_bytes"]) if row["memory_bytes"] else UNKNOWN, count(row["parameters"]),
            on, state + floor + best + (f": {plain(row['error'], 80)}" if row["error"] else ""),
        ])  # fmt: skip
    return titles, lines


def table_html(plan: SweepPlan, now: Standing) -> str:
    """:func:`table` without scripts, every name escaped; empty before the first point."""
    titles, lines = table(plan, now)
    return inline_table(titles, lines) if lines else ""


def table_text(plan: SweepPlan, now: Standing) -> str:
    """:func:`table` for terminals; empty before the first point."""
    titles, lines = table(plan, now)
    return aligned([titles, *lines]) if lines else ""
