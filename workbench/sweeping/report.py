"""A sweep as one HTML page with everything in it, and as a fragment for a cell."""

from __future__ import annotations

from html import escape
from pathlib import Path

from workbench.plots.page import page_html, place, write_page
from workbench.plots.static import experiment_html
from workbench.plots.sweep import figures, sweep_png
from workbench.plots.tables import choices_table
from workbench.printable import plain
from workbench.sweeping.picture import picture_of
from workbench.sweeping.plan import SweepPlan
from workbench.sweeping.standing import Standing
from workbench.sweeping.tables import table_html

_CAPTIONS = {
    "pareto": "A point per setting. The line joins those that no other beats in both: what is worth paying for.",
    "knob": "Grey: single seeds. Large: their mean. Where the seeds of one setting spread as far as the settings do, "
    "the knob says nothing.",
    "parallel": "A line per setting, through its knobs to its score. Drag along an axis to pick settings.",
    "importance": "How much of the order of the settings each knob explains by itself.",
}


def sweep_html(plan: SweepPlan, now: Standing, summary: str) -> str:
    """Sentences, table and, of what has ended, a picture; without scripts, every name escaped."""
    picture = picture_of(plan, now)
    return experiment_html(summary, table_html(plan, now), sweep_png(picture) if picture.dots else b"")


def write_report(plan: SweepPlan, now: Standing, summary: str, path: str | Path) -> Path:
    """Write the page whole or not at all; returns its path.

    Raises:
        OSError: the file cannot be written; an older report there is untouched.
    """
    return write_page(path, report_html(plan, now, summary))


def report_html(plan: SweepPlan, now: Standing, summary: str) -> str:
    """The page as text; no address outside the page."""
    picture = picture_of(plan, now)
    variants = {
        "pareto": {cost: f"against {words}" for cost, words in picture.costs.items()},
        "knob": {path: f"against {path}" for path in plan.space},
        "parallel": {"all": "all knobs"},
        "importance": {"all": "all knobs"},
    }
    places = "\n".join(place(name, options, _CAPTIONS[name]) for name, options in variants.items())
    title, head = plain(plan.name), "</p><p>".join(map(escape, summary.splitlines()))
    body = (
        f"<header><h1>{escape(title)}</h1><p>{head}</p></header>\n<main>\n<h2>Points</h2>{table_html(plan, now)}"
        f"<h2>Pictures</h2>{places}<h2>Recipe that all points start from</h2>{choices_table(plan.recipe)}</main>\n"
        f'<footer><p class="quiet">workbench {escape(plan.version)}</p></footer>'
    )
    return page_html(title, body, figures(picture))
