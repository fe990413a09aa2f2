"""A recipe as text that people copy, edit and paste: Python that rebuilds it, and JSON. :mod:`recipe_reader` reads it.

Both take plain fields rather than a recipe, so that one that cannot run yet has a text, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from typing import Any

from workbench.plots.tables import choices_table
from workbench.printable import plain
from workbench.recipe import Recipe
from workbench.recipe_code import recipe_code


def as_python(fields: Mapping[str, Any], base: Mapping[str, Any], preset: str | None) -> str:
    """Python that builds a recipe from a preset, or from the defaults when it came from none.

    Args:
        base: the fields of ``preset``; not used without one.
    """
    start = (f"wb.presets.{preset}()", base) if preset else ("wb.Recipe()", Recipe().to_dict())
    return f"import workbench as wb\n\nrecipe = {recipe_code(fields, *start)}\nrun = wb.launch(recipe)\n"


def as_json(fields: Mapping[str, Any]) -> str:
    """The text of a run's ``recipe.json``."""
    return json.dumps(fields, indent=2, ensure_ascii=False) + "\n"


def as_html(recipe: Recipe | None) -> str:
    """The choices of a recipe as a table, for where nothing can be edited; None for one that cannot run."""
    if recipe is None:
        return "<p>The recipe that was composed cannot run as it is.</p>"
    return f"<p><strong>Recipe {escape(plain(recipe.name))}</strong></p>{choices_table(recipe.to_dict())}"
