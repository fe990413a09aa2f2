"""Purposes of knobs in words, so that a table of runs finds knobs by them."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic.fields import FieldInfo

from workbench.choices.choice import registry
from workbench.choices.progress import Budget
from workbench.choices.schedules.schedule import Schedule
from workbench.recipes.recipe import AXES, Recipe

_PARTS = ("tokenizer", "schedule", "batch_rule", "step", "order", "parallel", "combine", "notes")


def knob_texts(paths: Iterable[str]) -> dict[str, str]:
    """Help by dotted path; nothing for a knob that no declared choice has, as of a later version.

    Example:
        >>> knob_texts(["optimizer.lr"])
        {'optimizer.lr': 'peak learning rate'}
    """
    found = {path: _field(path) for path in paths}
    return {path: info.description for path, info in found.items() if info is not None and info.description}


def _field(path: str) -> FieldInfo | None:
    *parents, name = path.split(".")
    if not parents:
        return Recipe.model_fields.get(name)
    if parents == ["budget"]:
        return Budget.model_fields.get(name)
    # What is neither an axis nor a part of one is a number that follows a schedule.
    axis = parents[-1] if parents[-1] in (*AXES, *_PARTS) else Schedule.axis
    # Kinds of one axis call the same thing by the same name.
    return next((kind.model_fields[name] for kind in registry(axis).values() if name in kind.model_fields), None)
