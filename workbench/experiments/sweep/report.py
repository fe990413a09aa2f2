"""A sweep as one HTML page with everything in it, and as a fragment for a cell."""

from __future__ import annotations

from html import escape

from workbench.experiments.sweep.picture import picture_of
from workbench.experiments.sweep.plan import SweepPlan
from workbench.experiments.sweep.sentences import conditions
from workbench.experiments.sweep.status import Standing
from workbench.experiments.sweep.tables import table_html
from workbench.plots.page import experiment_page, place
from workbench.plots.static import experiment_html
from workbench.plots.sweep import figures, sweep_png
from workbench.plots.tables import choices_table

_CAPTIONS = {
    "pareto": "A point per setting. The line joins those that no other beats: what is worth paying for.",
    "knob": "Grey: single seeds. Large: their mean. Where the seeds of one setting spread as far as the settings do, "
    "the knob says nothing.",
    "parallel": "A line per setting, through its knobs to its score. Drag along an axis to pick settings.",
    "importance": "How much of the order of the settings each knob explains by itself.",
}


def cell_html(plan: SweepPlan, now: Standing, summary: str) -> str:
    """Sentences, table and, of what has ended, a picture; without scripts, every name escaped."""
    picture = picture_of(plan, now)
    return experiment_html(summary, table_html(plan, now), sweep_png(picture) if picture.dots else b"")


def report_html(plan: SweepPlan, now: Standing, summary: str) -> str:
    """The page as text; no address outside the page."""
    picture, points = picture_of(plan, now), [each.point for each in now.points]
    variants = {
        "pareto": {cost: f"against {words}" for cost, words in picture.costs.items()},
        "knob": {path: f"against {path}" for path in plan.space},
        "parallel": {"all": "all knobs"},
        "importance": {"all": "all knobs"},
    }
    places = "\n".join(place(name, options, _CAPTIONS[name]) for name, options in variants.items())
    body = (
        f"\n<h2>Points</h2><p>{escape(conditions(plan, points))}</p>{table_html(plan, now)}<h2>Pictures</h2>{places}"
        f"<h2>Recipe that all points start from</h2>{choices_table(plan.base(points))}"
    )
    return experiment_page(plan.name, summary.splitlines(), body, plan.version, figures(picture))
