"""A tuning as text, as a fragment for a cell, and as one HTML page: the race's verdict first, its evidence below."""

from __future__ import annotations

from html import escape

from workbench.base.fields import as_typed
from workbench.base.text import aligned, decimal, plain
from workbench.experiments.race import picture
from workbench.experiments.race.sentences import sentence
from workbench.experiments.sweep.picture import picture_of
from workbench.experiments.sweep.space import short
from workbench.experiments.tune.plan import TuningPlan
from workbench.experiments.tune.results import rows
from workbench.experiments.tune.status import Standing
from workbench.experiments.words import UNITS
from workbench.plots.page import experiment_page, place
from workbench.plots.race import race_png
from workbench.plots.static import image_html, inline_table
from workbench.plots.sweep import figures
from workbench.plots.tables import choices_table

_KNOB = "Grey: single seeds. Large: their mean. Scores of text that settings are chosen on: no result."


def table(plan: TuningPlan, now: Standing) -> tuple[list[str], list[list[str]]]:
    """Titles and rows of text: every setting in the order in which it was tried."""
    titles = ["setting", "differs in", f"tuning score ({UNITS[plan.score]})", "seeds", "state"]
    lines = []
    for row in rows(now):
        changed = ", ".join(f"{short(path)}={as_typed(value)}" for path, value in row["changed"].items())
        done = "kept" if row["kept"] else ""
        state = done if row["status"] == "done" else f"{row['status']}{': ' * bool(row['error'])}{row['error']}"
        lines.append([str(row["point"]), plain(changed, 100) or "nothing: the recipe as it is",
                      decimal(row["tuning_score"], 3), str(len(row["scores"])), plain(state, 80)])  # fmt: skip
    return titles, lines


def table_text(plan: TuningPlan, now: Standing) -> str:
    """:func:`table` for terminals; empty before the first setting."""
    titles, lines = table(plan, now)
    return aligned([titles, *lines]) if lines else ""


def table_html(plan: TuningPlan, now: Standing) -> str:
    """:func:`table` without scripts, every name escaped; empty before the first setting."""
    titles, lines = table(plan, now)
    return inline_table(titles, lines) if lines else ""


def cell_html(plan: TuningPlan, now: Standing, summary: str) -> str:
    """Sentences, the race once there is one, and all settings, without scripts, every name escaped."""
    lines = "<br>".join(map(escape, summary.splitlines()))
    return f"<div>{lines}</div>{_race(now)}{table_html(plan, now)}"


def _race(now: Standing) -> str:
    """Its table and picture; its sentence stands among those of the tuning already."""
    if now.race is None or now.race_plan is None:
        return ""
    plan, race = now.race_plan, now.race
    seen = "; ".join(sentence(plan, each) for each in race.verdicts.values())
    return picture.table_html(plan, race) + image_html(race_png(picture.picture_of(plan, race)), escape(seen))


def report_html(plan: TuningPlan, now: Standing, summary: str) -> str:
    """The page as text; no address outside the page."""
    knobs = place("knob", {each: f"against {each}" for each in now.sweep_plan.space}, _KNOB)
    race = f"<h2>Result: the race</h2>{_race(now)}" if now.race is not None else ""
    body = (
        f"{race}<h2>Evidence: every setting that was tried</h2>{table_html(plan, now)}{knobs}"
        f"<h2>Recipe, with what was kept</h2>{choices_table(now.recipe.to_dict())}"
    )
    shown_here = {name: figure for name, figure in figures(picture_of(now.sweep_plan, now.sweep)).items()
                  if name.startswith("knob/")}  # fmt: skip
    return experiment_page(plan.name, summary.splitlines(), body, plan.version, shown_here)
