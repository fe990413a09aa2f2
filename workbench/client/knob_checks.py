"""A knob that is misspelt in the edits of a fork, found in the run's recipe as JSON has it. Standard library only.

To check edits in full, torch is loaded, which takes seconds on a busy machine: too long to wait for one letter.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from workbench.base.assignments import assignment
from workbench.base.errors import RecipeError
from workbench.store.control import read_knobs
from workbench.store.folder import RunFolder, read_object

# A letter too many, too few or swapped. Any other name may be of a knob that the run's version did not have yet.
_ALIKE = 0.7


def check_spelling(folder: RunFolder, edits: Iterable[str]) -> None:
    """Refuse edits of a knob that a run's recipe does not have, where it has one of nearly the same name.

    Args:
        edits: ``PATH=VALUE`` texts.

    Raises:
        RecipeError: there is one, or an edit is no such text.
    """
    asked = dict(map(assignment, edits))
    recipe = read_object(folder.recipe)
    for path in asked:
        if not _renewed(path, asked) and (meant := _meant(recipe, path.split("."))):
            raise RecipeError(f"{path}: this run has no such knob; did you mean {meant}?")


def _meant(recipe: Mapping[str, Any], parts: list[str]) -> str:
    """Return the path that was meant; empty where it is right, or like no other."""
    node: Any = recipe
    for place, part in enumerate(parts):
        if not isinstance(node, Mapping):
            return ""
        if part not in node:
            near = difflib.get_close_matches(part, node, n=1, cutoff=_ALIKE)
            return ".".join([*parts[:place], *near, *parts[place + 1 :]]) if near else ""
        node = node[part]
    return ""


def _renewed(path: str, asked: Mapping[str, Any]) -> bool:
    """Return True if the edits put another choice around a knob."""
    parts = path.split(".")
    around = [".".join(parts[:count]) for count in range(1, len(parts))]
    return any(each in asked or f"{each}.kind" in asked for each in around)


def check_knob(folder: RunFolder, path: str, value: Any) -> None:
    """Refuse a knob or a value that the run would refuse. A misspelt knob needs no torch; all else imports it.

    Raises:
        RunError: this knob cannot be turned while the run trains.
        RecipeError: there is no such knob, or the value is not legal.
    """
    # As the trainer last wrote them; before it did, the recipe's own are in force.
    effective_knobs = {knob["path"]: knob["value"] for knob in read_knobs(folder)}
    if path not in effective_knobs:
        check_spelling(folder, [f"{path}=1"])
    from workbench.recipes.changes import turned
    from workbench.recipes.recipe import Recipe

    turned(Recipe.load(folder.recipe).with_(**effective_knobs), path, value)
