"""A race as one HTML page with everything in it."""

from __future__ import annotations

from html import escape

from workbench.base.fields import differences, flatten
from workbench.base.text import plain
from workbench.experiments.race.picture import picture_of, table_html
from workbench.experiments.race.plan import RacePlan
from workbench.experiments.race.sentences import budget_lines
from workbench.experiments.race.status import Standing
from workbench.experiments.race.tables import arms_html
from workbench.plots.page import experiment_page, place
from workbench.plots.race import race_curves, race_differences, race_png
from workbench.plots.race_tables import curves_table, differences_table
from workbench.plots.static import experiment_html
from workbench.plots.tables import choices_table, table

_CAPTIONS = {
    "curves": "Mean of the seeds that are done; the band reaches from the best seed to the worst.",
    "differences": "Faint: single seeds, each against the baseline's run of that seed.{mean} Within the grey stripe "
    "two arms are called equivalent.",
}
_MEAN = " Diamond: their mean with its interval."


def cell_html(plan: RacePlan, now: Standing, summary: str) -> str:
    """Sentences, table and picture without scripts, every name escaped."""
    return experiment_html(summary, table_html(plan, now), race_png(picture_of(plan, now)))


def report_html(plan: RacePlan, now: Standing, summary: str) -> str:
    """The page as text; no address outside the page."""
    picture = picture_of(plan, now)
    # Where seeds are on the floor, or the first look is still ahead, there is no mean to explain.
    mean = _MEAN if any(gap.mean is not None for gap in picture.gaps) else ""
    places = "\n".join(
        place(name, {"all": "all arms"}, caption.format(mean=mean)) for name, caption in _CAPTIONS.items()
    )
    budget = "<br>".join(escape(line.strip()) for line in budget_lines(plan))
    body = (
        f"\n<h2>Verdicts</h2>{table_html(plan, now)}"
        f"<h2>Arms</h2><p>Each run at the budget of {escape(plan.budget)}. {budget}</p>"
        f"{arms_html(plan, now)}<h2>Knobs that differ</h2>{_knobs_html(plan)}<h2>Pictures</h2>{places}"
        f"<details><summary>The numbers of the pictures</summary>{curves_table(picture)}{differences_table(picture)}"
        f"</details><h2>Recipe of {escape(plain(plan.baseline))}</h2>{choices_table(plan.arms[plan.baseline])}"
    )
    figures = {"curves/all": race_curves(picture), "differences/all": race_differences(picture)}
    return experiment_page(plan.name, [*summary.splitlines(), *plan.warnings], body, plan.version, figures)


def _knobs_html(plan: RacePlan) -> str:
    names = [plan.baseline, *plan.others]
    flat = [flatten({**plan.arms[arm], "name": "", "notes": ""}) for arm in names]
    rows = [(path, ["-" if value is None else plain(value, 80) for value in values])
            for path, values in differences(flat).items()]  # fmt: skip
    return table([plain(name) for name in names], rows) if rows else "<p>None.</p>"
