"""The layer picture of the summary: its stages, and a run without layers beside one that has them."""

from __future__ import annotations

from workbench.plots.layers_static import Activity
from workbench.plots.static import summary_png


def test_the_picture_knows_the_stages(view):
    picture = Activity.of(view)
    assert [stage.label for stage in picture.stages] == ["stage 2 of 2"]
    assert 100 in picture.edges
    assert len(picture.edges) == picture.codes_LK.shape[1] + 1
    assert picture.sampled == ", one of every 5 steps"


def test_without_records_of_layers(empty, view):
    assert len(summary_png([empty, view])) < 80_000
