"""A recipe as text that people paste: Python that rebuilds it, and a table of what differs."""

from __future__ import annotations

from collections.abc import Mapping
from pprint import pformat
from typing import Any

from workbench.choices.choice import registry
from workbench.recipe import Recipe
from workbench.ui.form import defaults
from workbench.ui.inputs import same, shape_of


def as_python(recipe: Recipe, base: Recipe, preset: str | None) -> str:
    """Python that builds ``recipe`` from a preset, or from the defaults when it came from none.

    Args:
        recipe: what the text must build.
        base: the recipe that ``preset`` names.
        preset: its name, or None.
    """
    here, there = recipe.to_dict(), (base if preset else Recipe()).to_dict()
    changes = {key: _change(key, here[key], there[key]) for key in here if not same(here[key], there[key])}
    lines = [f"    {key}={_literal(value)}," for key, value in changes.items()]
    start = f"wb.presets.{preset}()" if preset else "wb.Recipe()"
    call = ".with_(\n" + "\n".join(lines) + "\n)" if lines else ""
    return f"import workbench as wb\n\nrecipe = {start}{call}\nrun = wb.launch(recipe)\n"


def as_difference(recipe: Recipe, base: Recipe) -> str:
    """One line per field that differs from ``base``: path, its value there, its value here."""
    found = recipe.diff(base)
    if not found:
        return "no difference from the preset"
    width = max(map(len, found))
    return "\n".join(f"{path:<{width}}  {there!r} -> {here!r}" for path, (here, there) in found.items())


def _change(axis: str, here: Any, there: Any) -> Any:
    """The smallest value for ``with_`` that turns ``there`` into ``here``; ``axis`` is where its kinds are found."""
    if not isinstance(here, Mapping):
        return here
    model = registry(axis)[here["kind"]] if "kind" in here else None
    alike = isinstance(there, Mapping) and here.get("kind") == there.get("kind")
    # Another kind starts from its own defaults, so only what differs from those needs saying.
    start = there if alike or model is None else defaults(model)
    changed = {key: value for key, value in here.items() if key != "kind" and not same(value, start.get(key))}
    axes = {key: shape_of(model.model_fields[key]).axis for key in changed} if model else {}
    # ... and a mapping inside it starts from nothing, so it names its own kind again.
    from_here = start if alike else {}
    inner = {key: _change(axes.get(key, ""), value, from_here.get(key)) for key, value in changed.items()}
    return inner if alike or model is None else {"kind": here["kind"]} | inner


def _literal(value: Any) -> str:
    return pformat(value, sort_dicts=False, width=76).replace("\n", "\n    ")
