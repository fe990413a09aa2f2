"""Stand-ins for a user's objects: read with a recipe, never offered, composed or built."""

from __future__ import annotations

import pytest

from workbench.base.errors import RecipeError
from workbench.choices.choice import readable, registry
from workbench.choices.own import OwnLoader, OwnLoss, OwnModel
from workbench.forecasting.forecast import forecast
from workbench.recipes.recipe import Recipe


@pytest.fixture
def recipe() -> Recipe:
    return Recipe(
        architecture=OwnModel(model="Net", parameters=10, layers=4, stack="blocks"), objective=OwnLoss(loss="own_loss"),
        data=OwnLoader(loader="list", batches=3, batch_size=5),
    )  # fmt: skip


def test_a_recipe_with_them_is_read_and_edited(recipe: Recipe) -> None:
    assert Recipe.from_json(recipe.to_json()) == recipe
    edited = recipe.with_(optimizer="lans", depth={"kind": "progressive_drop"})
    assert edited.architecture == recipe.architecture
    assert edited.optimizer.kind == "lans"
    known = {"kind", "model", "parameters", "frozen", "layers", "stack"}
    assert recipe.to_dict()["architecture"].keys() == known
    assert "tokenizer" not in recipe.to_dict()["data"]


@pytest.mark.parametrize(
    ("axis", "kind"), [("architecture", "own_model"), ("objective", "own_loss"), ("data", "own_loader")]
)
def test_they_are_not_offered(axis: str, kind: str) -> None:
    assert kind in readable(axis)
    assert kind not in registry(axis)
    with pytest.raises(RecipeError) as error:
        Recipe(**{axis: "no_such"})
    assert kind not in str(error.value)


def test_nothing_is_built_or_foretold(recipe: Recipe) -> None:
    with pytest.raises(RecipeError, match="a loader, a loss, a model of its run were objects of a Python program"):
        recipe.check_whole()
    with pytest.raises(RecipeError, match="is not whole"):
        forecast(recipe)
    with pytest.raises(RecipeError, match="the model, a Net, of this run was an object of a Python program"):
        recipe.architecture.build(None, 8, causal=False, attention="plain")
    Recipe().check_whole()


def test_a_depth_method_still_has_its_say(recipe: Recipe) -> None:
    with pytest.raises(RecipeError, match=r"drops more layers than exist"):
        recipe.with_(architecture={"layers": 1}, depth={"kind": "progressive_drop", "theta": 0.1})
