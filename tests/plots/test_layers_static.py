"""The layer picture of the summary: its stages, and a run without layers beside one that has them."""

from __future__ import annotations

from matplotlib.figure import Figure

from workbench.plots.layers_static import Activity, draw_update_ratio
from workbench.plots.static import summary_png


def test_the_picture_knows_the_stages(view):
    picture = Activity.of(view)
    assert [stage.label for stage in picture.stages] == ["stage 2 of 2"]
    assert 100 in picture.edges
    assert len(picture.edges) == picture.codes_LK.shape[1] + 1
    assert picture.sampled == ", one of every 5 steps"


def test_without_records_of_layers(empty, view):
    assert len(summary_png([empty, view])) < 80_000


def test_layers_are_numbered_in_whole_numbers(view):
    for record in view.telemetry.layers:
        record["update_ratio"] = [1e-3, 2e-3]
    axes = Figure().subplots()
    draw_update_ratio(axes, view, "")
    assert axes.get_yticks().tolist() == [1, 2]
