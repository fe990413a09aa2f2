"""A recipe as text that people copy, edit and paste: Python that rebuilds it, and JSON. :mod:`recipe_reader` reads it.

Both take plain fields rather than a recipe, so that one that cannot run yet has a text, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from workbench.recipes.code import recipe_code
from workbench.recipes.recipe import Recipe


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
    return recipe._repr_html_() if recipe else "<p>The recipe that was composed cannot run as it is.</p>"
