"""Recipes of an experiment: where they come from. What compares is tested with races and sweeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.experiments.race.conftest import tiny
from workbench.base.errors import RecipeError
from workbench.experiments.validation import recipe_of
from workbench.recipes.recipe import Recipe

__all__ = ["tiny"]


def test_arms_as_texts(tiny: Recipe, tmp_path: Path) -> None:
    assert recipe_of("fast:depth.kind=progressive_drop,optimizer.lr=1e-3").depth.kind == "progressive_drop"
    edited = recipe_of('fast:data.batch_size={"kind": "linear", "start": 4, "end": 8},optimizer.lr=1e-3')
    assert (edited.data.most_rows, edited.optimizer.lr) == (8, 1e-3)
    assert recipe_of(str(tiny.save(tmp_path / "mine.json"))) == tiny
    with pytest.raises(RecipeError, match="did you mean 'fast'"):
        recipe_of("fsat")
    with pytest.raises(RecipeError, match="got 3"):
        recipe_of(3)  # type: ignore[arg-type]
