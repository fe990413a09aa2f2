"""What every engine shares: the axis it is found on."""

from __future__ import annotations

import pytest

from workbench.choices.choice import registry
from workbench.choices.execution import Execution, Native
from workbench.errors import RecipeError
from workbench.recipe import Recipe


def test_engines_are_found_by_their_axis_and_the_base_is_none() -> None:
    assert registry("execution")["native"] is Native
    assert all(issubclass(engine, Execution) and engine is not Execution for engine in registry("execution").values())


def test_an_unknown_engine_is_answered_with_the_nearest() -> None:
    with pytest.raises(RecipeError, match=r"execution\.kind: unknown value 'nativ'; did you mean 'native'\?"):
        Recipe(execution="nativ")


def test_a_choice_of_another_axis_is_no_engine() -> None:
    with pytest.raises(RecipeError, match="a choice of axis 'execution' stands where 'depth' is expected"):
        Recipe(depth=Native())
