"""A recipe as text: Python that rebuilds it, to copy; JSON, to copy, edit and paste.

Both take plain fields rather than a recipe, so that one that cannot run yet has a text, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from workbench.base.assignments import read_json_text
from workbench.base.errors import RecipeError
from workbench.choices.data.tuning_text import on_own_text
from workbench.jupyter.compose.text_problems import TextError, TextProblem, json_tree, placed
from workbench.recipes.code import recipe_code
from workbench.recipes.recipe import Recipe

LONGEST = 200_000
"""Characters; recipes have some thousands, and the page waits for the answer."""


def as_python(fields: Mapping[str, Any], base: Mapping[str, Any], preset: str | None) -> str:
    """Return Python that builds a recipe from a preset, or from the defaults when it came from none.

    Args:
        base: the fields of ``preset``; not used without one.
    """
    start = (f"wb.presets.{preset}()", base) if preset else ("wb.Recipe()", Recipe().to_dict())
    return f"import workbench as wb\n\nrecipe = {recipe_code(fields, *start)}\nrun = wb.launch(recipe)\n"


def as_json(fields: Mapping[str, Any]) -> str:
    """Return the text of a run's ``recipe.json``."""
    return json.dumps(fields, indent=2, ensure_ascii=False) + "\n"


def read_json(text: str) -> Recipe:
    """Return the recipe of a JSON text.

    Raises:
        TextError: not JSON, or no recipe; each problem with the line it stands in.
    """
    if len(text) > LONGEST:
        raise TextError([TextProblem(1, f"{len(text):,} characters; a recipe has at most {LONGEST:,}")])
    try:
        read_json_text(text, "recipe")
        recipe = Recipe.from_json(text)
        recipe.check_whole()
        return on_own_text(recipe)
    except json.JSONDecodeError as error:
        raise TextError([TextProblem(error.lineno, f"not JSON: {error.msg} (column {error.colno})")]) from None
    except RecipeError as error:
        raise TextError(placed(error, json_tree(text))) from None


def as_html(recipe: Recipe | None) -> str:
    """Return the choices of a recipe as a table, for where nothing can be edited; None for one that cannot run."""
    return recipe._repr_html_() if recipe else "<p>The recipe that was composed cannot run as it is.</p>"
