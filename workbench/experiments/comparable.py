"""Recipes of one experiment: where they come from, and whether their scores compare."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.base.errors import RecipeError
from workbench.telemetry.scored_text import OTHER_KINDS, OTHER_TEXT, ScoredText

if TYPE_CHECKING:
    from workbench.choices.data.tokens import PreparedData
    from workbench.recipes.recipe import Recipe

Say = Callable[[str], None]


def recipe_of(source: Recipe | str) -> Recipe:
    """A recipe: itself, or as text ``fast``, ``recipe.json`` or ``fast:optimizer.lr=1e-3,depth=full``.

    Raises:
        RecipeError: no such preset or file, or a change that does not fit.
    """
    from workbench.recipes import presets
    from workbench.recipes.recipe import Recipe

    if isinstance(source, Recipe):
        return source.located()
    if not isinstance(source, str):
        raise RecipeError(f"give a recipe, a preset's name or a recipe file, got {source!r:.80}")
    start, _, changes = source.partition(":")
    path = Path(start).expanduser()
    recipe = Recipe.load(path) if path.suffix == ".json" or os.sep in start else presets.get(start)
    # At commas before the next PATH=, so that lists and objects stay whole.
    return (recipe.with_assignments(re.split(r",(?=[\w.]+=)", changes)) if changes else recipe).located()


def same_text(recipes: Mapping[str, Recipe], score: str, say: Say) -> dict[str, PreparedData]:
    """The data of every recipe, prepared; all must be scored on the same text.

    Args:
        recipes: by what a message calls them, such as ``arm 'mine'``.
        score: ``nats`` or ``bits_per_byte``.

    Raises:
        RecipeError: the scores of two recipes do not compare. DataError: the text cannot be prepared.
    """
    from workbench.choices.data.prepare import prepare

    kinds = {recipe.objective.causal: f"{name} {recipe.objective.kind}" for name, recipe in recipes.items()}
    if len(kinds) > 1:
        raise RecipeError(f"scores of different kinds ({', '.join(kinds.values())}): {OTHER_KINDS}; "
                          "compare causal and masked recipes apart")  # fmt: skip
    # Once per text, and before the launch: several runs would prepare the same text at the same time.
    keys = {name: recipe.data.model_dump_json() for name, recipe in recipes.items()}
    ready = {key: prepare(data, say) for key, data in {keys[name]: recipes[name].data for name in recipes}.items()}
    prepared = {name: ready[key] for name, key in keys.items()}
    first = next(iter(recipes))
    scored = {key: ScoredText.of(each.fingerprint) for key, each in ready.items()}
    for name in recipes:
        apart = scored[keys[first]].apart(scored[keys[name]])
        if apart == OTHER_TEXT:
            raise RecipeError(f"{first} and {name} {apart}; give both the same data and data.heldout_fraction")
        if apart and score == "nats":
            raise RecipeError(
                f"{first} and {name} {apart}; give both the same, or compare bits per byte (score='bits_per_byte')"
            )
    return prepared
