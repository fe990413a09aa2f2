"""What makes the pictures of the cards: its recipes are whole, its pictures are where the cards look for them."""

from __future__ import annotations

import importlib.util
import io
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

from tests.plots.synthetic import trained
from workbench.store.view import RunView
from workbench.telemetry.quantities import LAYER_STATES

MAKER = Path(__file__).parent.parent / "docs" / "pictures.py"


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pictures", MAKER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> RunView:
    """A run that grew, dropped and froze layers."""
    return trained(tmp_path_factory.mktemp("runs"))


def test_every_picture_has_a_recipe_of_its_method_and_a_card_that_shows_it(maker: ModuleType) -> None:
    for kind in maker.PRESETS:
        recipe = maker.recipe_of(kind, 120)
        assert recipe.depth.kind == kind
        assert (recipe.budget.amount, recipe.architecture.layers) == (120, 12)
        assert f"]({kind}.png)" in (maker.CARDS / f"{kind}.md").read_text(encoding="utf-8")
        assert 2_000 < (maker.CARDS / f"{kind}.png").stat().st_size <= maker.MOST_BYTES


def _near(png: bytes, colour: str) -> np.ndarray:
    """(H, W) bool: pixels of about this colour."""
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
    return np.abs(pixels - [int(colour[i : i + 2], 16) for i in (1, 3, 5)]).sum(-1) < 24


def test_every_state_that_occurs_is_seen_and_no_other(maker: ModuleType, view: RunView) -> None:
    png = maker.layers_png(view, "a method")
    assert png.startswith(b"\x89PNG")
    assert len(png) < 80_000
    occurring = {code for record in view.telemetry.layers for code in record["state"]}
    for code, state in enumerate(LAYER_STATES):
        if state.opacity == 1:
            assert (_near(png, state.colour).sum() > 200) == (code in occurring), state.name


def test_copies_stand_upper_right_and_frozen_below_them(maker: ModuleType, view: RunView) -> None:
    png = maker.layers_png(view, "a method")
    copied, frozen = (np.argwhere(_near(png, LAYER_STATES[code].colour)) for code in (5, 2))
    # Row 0 is the top. The legend has small swatches of both, so the bulk is looked at.
    assert np.median(copied[:, 0]) < np.median(frozen[:, 0])
    assert np.median(copied[:, 1]) > 440, "in the second half of the run"


def test_the_card_of_lans_shows_its_race_as_the_result_files_have_it(maker: ModuleType) -> None:
    path = maker.CARDS.parent / "optimizers" / "lans.png"
    assert "](lans.png)" in path.with_suffix(".md").read_text(encoding="utf-8")
    kept, now = (
        np.asarray(Image.open(each).convert("L")).astype(int) for each in (path, io.BytesIO(maker.batches_png()))
    )
    # Fonts of another machine move letters a little.
    assert kept.shape == now.shape
    assert abs(kept - now).mean() < 4


@pytest.mark.process
def test_a_mistyped_method_is_told_the_legal_ones() -> None:
    done = subprocess.run([sys.executable, str(MAKER), "stackin"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "did you mean 'stacking'" in done.stderr
