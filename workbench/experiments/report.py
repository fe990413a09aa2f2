"""An experiment as a fragment for a cell and as one HTML page; its kind says which sections and pictures it has."""

from __future__ import annotations

import importlib
from html import escape
from typing import Any

from workbench.experiments.snapshot import Drawing, Snapshot
from workbench.plots.page import experiment_page, place
from workbench.plots.static import experiment_html


def cell_html(seen: Snapshot[Any, Any]) -> str:
    """Return sentences, tables and a picture without scripts, every name escaped."""
    return experiment_html(seen.summary, seen.table_html(), importlib.import_module(seen.drawn_by).png(seen))


def report_html(seen: Snapshot[Any, Any]) -> str:
    """Return the page as text, without any address outside it."""
    drawn = importlib.import_module(seen.drawn_by)
    drawings: dict[str, Drawing] = drawn.drawings(seen)
    places: dict[str, dict[str, Drawing]] = {}
    for key, each in drawings.items():
        name, _, variant = key.partition("/")
        places.setdefault(name, {})[variant or "all"] = each
    pictures = "\n".join(
        place(name, {variant: each.title for variant, each in several.items()}, next(iter(several.values())).caption)
        for name, several in places.items()
    )
    numbers = "".join(f"<h3>{escape(each.title)}</h3>{each.numbers()}" for each in drawings.values())
    sections = {
        **drawn.sections(seen),
        "Pictures": f"{pictures}<details><summary>The numbers of the pictures</summary>{numbers}</details>",
        **drawn.recipe_section(seen),
    }
    body = "".join(f"<h2>{escape(title)}</h2>{html}" for title, html in sections.items())
    figures = {f"{name}/{variant}": each.figure() for name, several in places.items()
               for variant, each in several.items()}  # fmt: skip
    lines = [*seen.summary.splitlines(), *seen.plan.warnings]
    return experiment_page(seen.plan.name, lines, f"\n{body}", seen.plan.version, figures)
