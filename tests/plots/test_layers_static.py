"""The layer picture as a PNG: what is seen, where, how large."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from workbench.plots.layers_static import Activity, layers_png
from workbench.plots.static import summary_png
from workbench.quantities import LAYER_STATES


def _near(png: bytes, colour: str) -> np.ndarray:
    """(H, W) bool: pixels of about this colour."""
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
    return np.abs(pixels - [int(colour[i : i + 2], 16) for i in (1, 3, 5)]).sum(-1) < 24


def test_every_state_that_occurs_is_seen_and_no_other(view):
    png = layers_png(view)
    assert png.startswith(b"\x89PNG")
    assert len(png) < 80_000
    occurring = {code for record in view.telemetry.layers for code in record["state"]}
    for code, state in enumerate(LAYER_STATES):
        if state.opacity == 1:
            assert (_near(png, state.colour).sum() > 200) == (code in occurring), state.name


def test_copies_stand_upper_right_and_frozen_below_them(view):
    png = layers_png(view)
    copied, frozen = (np.argwhere(_near(png, LAYER_STATES[code].colour)) for code in (5, 2))
    # Row 0 is the top. The legend has small swatches of both, so the bulk is looked at.
    assert np.median(copied[:, 0]) < np.median(frozen[:, 0])
    assert np.median(copied[:, 1]) > 440, "in the second half of the run"


def test_the_picture_knows_the_stages(view):
    picture = Activity.of(view)
    assert [stage.label for stage in picture.stages] == ["stage 2 of 2"]
    assert 100 in picture.edges
    assert len(picture.edges) == picture.codes_LK.shape[1] + 1


def test_without_records_of_layers(empty, view):
    with pytest.raises(ValueError, match="layers_every"):
        layers_png(empty)
    assert len(summary_png([empty, view])) < 80_000
