"""The waterfall picture: a bar where each factor begins and ends."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from workbench.plots.waterfall import waterfall_png


def test_bars_follow_each_other_and_a_loss_has_another_colour() -> None:
    picture = waterfall_png("speed", "a $tart", [("heads", 3.0), ("hats", 0.5), ("shoes", 2.0)])
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    assert image.width == 900
    assert len(picture) < 40_000
    colours = {tuple(colour) for colour in np.asarray(image).reshape(-1, 3)}
    alone = waterfall_png("speed", "a", [("heads", 3.0), ("shoes", 2.0)])
    fewer = {tuple(colour) for colour in np.asarray(Image.open(io.BytesIO(alone)).convert("RGB")).reshape(-1, 3)}
    assert len(colours - fewer) > 0


def test_nothing_to_draw_is_one() -> None:
    assert waterfall_png("speed", "a", []).startswith(b"\x89PNG")
