"""The schedule picture."""

from __future__ import annotations

import numpy as np

from workbench.plots.schedule import moving_knobs, schedule_figure


def test_rows_are_lr_and_what_moved(view):
    assert moving_knobs([view]) == ["lr", "depth.theta"]  # weight decay and layers_run stayed
    figure = schedule_figure([view], x="seconds")
    assert [note.text for note in figure.layout.annotations] == ["learning rate", "keep probability of the last layer"]
    theta = next(trace for trace in figure.data if trace.yaxis == "y2")
    np.testing.assert_allclose(theta.y[[0, -1]], [1 - 0.5 / 200, 0.5])


def test_nothing_yet(empty):
    assert moving_knobs([empty]) == ["lr"]
    assert [note.text for note in schedule_figure([empty]).layout.annotations] == ["nothing was measured"]
