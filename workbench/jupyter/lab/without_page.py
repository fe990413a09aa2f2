"""The output of a Lab in a notebook that no page has shown."""

from __future__ import annotations

import html
from pathlib import Path

from workbench.client import run_list
from workbench.jupyter.compose.recipe_text import as_html
from workbench.recipes.recipe import Recipe

_NEEDS_A_PAGE = "The Lab's forms, forecast and live curves need a page: run this cell in JupyterLab to have them."


def text_of(recipe: Recipe, runs_dir: str | Path | None) -> dict[str, str]:
    """Return the recipe that the Lab begins with and the runs, as HTML and as text."""
    found = run_list.runs(runs_dir)
    begins = f"It begins with the recipe {recipe.name}."
    page = f"<p>{_NEEDS_A_PAGE} {html.escape(begins)}</p>{found._repr_html_()}"
    return {"text/html": page, "text/plain": f"{_NEEDS_A_PAGE}\n{begins}\n\n{found.text()}"}


def html_of(recipe: Recipe | None, runs_dir: str | Path | None) -> str:
    """Return the recipe that is composed and the runs, without scripts."""
    found = run_list.runs(runs_dir)
    listed = f"<p><strong>Runs in {html.escape(str(found.root))}</strong></p>{found._repr_html_()}"
    return f"{as_html(recipe)}{listed}"
