"""The leanest plan's price; how plans are made is tested in tests/planning."""

from __future__ import annotations

import pytest

from workbench.base.errors import RecipeError
from workbench.recipes.recipe import Recipe


@pytest.mark.parametrize("price", [-0.1, 11, "much"])
def test_a_price_is_a_share_of_a_step(price: object) -> None:
    with pytest.raises(RecipeError, match=r"execution\.price"):
        Recipe(execution={"kind": "memory", "price": price})


def test_a_price_is_no_knob_of_the_fastest_plan() -> None:
    with pytest.raises(RecipeError, match=r"execution\.price"):
        Recipe(execution={"kind": "auto", "price": 0.1})
