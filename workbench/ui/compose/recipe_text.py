"""A recipe as text that people copy, edit and paste: Python that rebuilds it, and JSON. :mod:`recipe_reader` reads it.

Both take plain fields rather than a recipe, so that one that cannot run yet has a text, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from pprint import pformat
from typing import Any

from workbench.choices.choice import registry
from workbench.choices.edits import axis_of, with_kind
from workbench.fields import same
from workbench.plots.tables import choices_table
from workbench.printable import plain
from workbench.recipe import Recipe


def as_python(fields: Mapping[str, Any], base: Mapping[str, Any], preset: str | None) -> str:
    """Python that builds a recipe from a preset, or from the defaults when it came from none.

    Args:
        base: the fields of ``preset``; not used without one.
    """
    there = base if preset else Recipe().to_dict()
    changes = {key: _change(key, fields[key], there[key]) for key in fields if not same(fields[key], there[key])}
    lines = [f"    {key}={_literal(value)}," for key, value in changes.items()]
    start = f"wb.presets.{preset}()" if preset else "wb.Recipe()"
    call = ".with_(\n" + "\n".join(lines) + "\n)" if lines else ""
    return f"import workbench as wb\n\nrecipe = {start}{call}\nrun = wb.launch(recipe)\n"


def as_json(fields: Mapping[str, Any]) -> str:
    """The text of a run's ``recipe.json``."""
    return json.dumps(fields, indent=2, ensure_ascii=False) + "\n"


def as_html(recipe: Recipe | None) -> str:
    """The choices of a recipe as a table, for where nothing can be edited; None for one that cannot run."""
    if recipe is None:
        return "<p>The recipe that was composed cannot run as it is.</p>"
    return f"<p><strong>Recipe {escape(plain(recipe.name))}</strong></p>{choices_table(recipe.to_dict())}"


def _change(axis: str, here: Any, there: Any) -> Any:
    """The smallest value for ``with_`` that turns ``there`` into ``here``; ``axis`` is where its kinds are found."""
    if not isinstance(here, Mapping):
        return here
    model = registry(axis)[here["kind"]] if "kind" in here else None
    alike = isinstance(there, Mapping) and here.get("kind") == there.get("kind")
    # Another kind starts from its own defaults and what it shares, so only what differs from those needs saying.
    start = with_kind(axis, there, here["kind"]) if model and not alike else there
    changed = {key: value for key, value in here.items() if key != "kind" and not same(value, start.get(key))}
    axes = {key: axis_of(model.model_fields[key].annotation) for key in changed} if model else {}
    inner = {key: _change(axes.get(key, ""), value, start.get(key)) for key, value in changed.items()}
    return inner if alike or model is None else {"kind": here["kind"]} | inner


def _literal(value: Any) -> str:
    return pformat(value, sort_dicts=False, width=76).replace("\n", "\n    ")
