"""What makes the pictures of the cards: its recipes are whole, its pictures are where the cards look for them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

MAKER = Path(__file__).parent.parent / "docs" / "pictures.py"


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pictures", MAKER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_picture_has_a_recipe_of_its_method_and_a_card_that_shows_it(maker: ModuleType) -> None:
    for kind in maker.PRESETS:
        recipe = maker.recipe_of(kind, 120)
        assert recipe.depth.kind == kind
        assert (recipe.budget.amount, recipe.architecture.layers) == (120, 12)
        assert f"]({kind}.png)" in (maker.CARDS / f"{kind}.md").read_text(encoding="utf-8")
        assert 2_000 < (maker.CARDS / f"{kind}.png").stat().st_size <= maker.MOST_BYTES


@pytest.mark.process
def test_a_mistyped_method_is_told_the_legal_ones() -> None:
    done = subprocess.run([sys.executable, str(MAKER), "stackin"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "did you mean 'stacking'" in done.stderr
