"""The hash of a recipe: fields of later versions do not count while they mean what there was before."""

from __future__ import annotations

import json
from typing import Any

from workbench.base.fields import at, put, without
from workbench.recipes.recipe import Recipe
from workbench.recipes.recipe_hash import LATE_FIELDS, recipe_hash


def test_a_recipe_of_before_keeps_its_hash() -> None:
    fields = earlier = Recipe().to_dict()
    for path in LATE_FIELDS:
        earlier = without(earlier, path)
    assert earlier != fields
    assert recipe_hash(earlier) == recipe_hash(fields) == Recipe(**earlier).hash


def _first_part(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields with the first of a mixture's parts in place of all."""
    parts = fields["data"].get("parts")
    return put(fields, "data.parts", parts[0]) if parts else fields


def test_the_defaults_are_those_of_the_recipe() -> None:
    files = {"kind": "files", "paths": ["a.txt"]}
    mixed = {"kind": "mixture", "parts": [{"name": "a", "source": files}]}
    texts = ["embedded", {"kind": "tuning_text"}, files, {"kind": "tuning_text", "text": files}, mixed]
    recipes = [*(Recipe(data=each).to_dict() for each in texts), Recipe(objective="causal").to_dict()]
    for path, before in LATE_FIELDS.items():
        found = [value for fields in recipes if (value := at(_first_part(fields), path)) is not None]
        assert found, path
        assert all(value == before for value in found), path
    earlier = json.loads(json.dumps(recipes[4]))
    for knob in ("bad_text", "expansion"):
        del earlier["data"]["parts"][0]["source"][knob]
    assert recipe_hash(earlier) == Recipe(**recipes[4]).hash


def test_hashes_are_those_of_the_first_recipes() -> None:
    """As commit f3be76a7 gave them: who adds a field says in ``LATE_FIELDS`` what it meant before."""
    data = {"kind": "embedded", "packages": ()}
    assert [Recipe(data=data, objective=kind).hash for kind in ("masked", "causal")] == ["ccc4317b6d", "e59ebe1c83"]


def test_a_file_that_names_no_packages_means_all_of_them() -> None:
    """As when it was written; a new recipe has the fixed list."""
    assert Recipe().data.packages == Recipe(data="embedded").data.packages == ("core",)
    for said in ({}, {"data": "embedded"}, {"data": {"kind": "embedded"}}):
        assert Recipe.from_json(json.dumps(said)).hash == "ccc4317b6d", said
    parts = [{"name": "a", "source": "embedded"}, {"name": "b", "source": {"kind": "embedded", "packages": ["torch"]}}]
    mixed = Recipe.from_json(json.dumps({"data": {"kind": "mixture", "parts": parts}}))
    assert [part.source.packages for part in mixed.data.parts] == [(), ("torch",)]
    for recipe in (Recipe(), Recipe(data={"kind": "embedded", "packages": ()})):
        assert Recipe.from_json(recipe.to_json()) == recipe


def test_a_late_field_that_is_used_counts() -> None:
    used = Recipe().with_(data={"steps": ["exact_duplicates"]})
    assert used.hash != Recipe().hash
    assert recipe_hash(used.to_dict()) == used.hash
