"""Whether a running run could take a knob's value: said where somebody asks, not a step later by the run."""

from __future__ import annotations

from typing import Any

from workbench.client.misspelt import check_spelling
from workbench.store.control import read_knobs
from workbench.store.folder import RunFolder


def check_knob(folder: RunFolder, path: str, value: Any) -> None:
    """Refuse a knob or a value that the run would refuse. A misspelt knob needs no torch; all else imports it.

    Raises:
        RunError: this knob cannot be turned while the run trains.
        RecipeError: there is no such knob, or the value is not legal.
    """
    # As the trainer last wrote them; before it did, the recipe's own are in force.
    in_force = {knob["path"]: knob["value"] for knob in read_knobs(folder)}
    if path not in in_force:
        check_spelling(folder, [f"{path}=1"])
    from workbench.recipes.changes import turned
    from workbench.recipes.recipe import Recipe

    turned(Recipe.load(folder.recipe).with_(**in_force), path, value)
