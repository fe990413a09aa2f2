"""The speed picture."""

from __future__ import annotations

import numpy as np

from workbench.plots.speed import OTHER, median_split, speed_figure
from workbench.telemetry.quantities import PARTS


def test_split_adds_up_to_the_step(view, empty):
    split = median_split(view)
    assert list(split) == [*PARTS, OTHER]
    assert sum(split.values()) == 100.0
    assert split["other"] == 5.0
    assert median_split(empty) == {}


def test_panels(view, plateau):
    figure = speed_figure([view, plateau], x="seconds")
    titles = [note.text for note in figure.layout.annotations]
    assert titles == ["speed (tokens/s), last 10 s", "MFU (%)", "median step (ms)", "peak memory (GiB)"]
    bars = [trace for trace in figure.data if trace.type == "bar"]
    assert [bar.name for bar in bars] == [*PARTS, OTHER]
    assert list(bars[1].x) == [30.0, 30.0]
    mfu = next(trace for trace in figure.data if trace.yaxis == "y2")
    np.testing.assert_allclose(mfu.y, 31.0, rtol=1e-5)


def test_nothing_yet(empty):
    assert [note.text for note in speed_figure([empty]).layout.annotations] == ["nothing was measured"]
