"""The numbers of a sweep's pictures as tables."""

from __future__ import annotations

import math
from dataclasses import replace

from tests.plots.test_race_tables import cells
from workbench.plots.sweep import Dot, SweepPicture
from workbench.plots.sweep_tables import importance_table, knob_table, parallel_table, pareto_table

PICTURE = SweepPicture(
    "nats",
    [Dot(0, "lr=0.1", {"optimizer.lr": 0.1}, 3.0, [2.9, 3.1], 20.0, 2e6, 1000.0),
     Dot(1, "lr=<b>", {"optimizer.lr": "<b>"}, 2.0, [2.0], 10.0),
     Dot(2, "theta=1", {"depth.theta": 1}, 2.5, [2.5], 30.0)],
    ["optimizer.lr", "depth.theta"], [], {"optimizer.lr": 0.75}, "share",
)  # fmt: skip


def test_points_stand_by_their_cost_with_their_place_on_the_front() -> None:
    assert cells(pareto_table(PICTURE, "seconds")) == [
        ["point", "seconds of training", "score (nats)", "front"],
        ["1: lr=&lt;b&gt;", "10.0", "2.000", "on the front"],
        ["0: lr=0.1", "20.0", "3.000", "beaten"],
        ["2: theta=1", "30.0", "2.500", "beaten"],
    ]
    assert math.isnan(PICTURE.dots[1].parameters)
    assert [row[0] for row in cells(pareto_table(PICTURE, "parameters"))[1:]] == ["0: lr=0.1"]


def test_knobs_and_their_importance() -> None:
    assert cells(knob_table(PICTURE, "optimizer.lr"))[1:] == [
        ["0: lr=0.1", "0.1", "3.000", "2.900, 3.100"],
        ["1: lr=&lt;b&gt;", "&lt;b&gt;", "2.000", "2.000"],
    ]
    assert cells(parallel_table(PICTURE))[1:] == [
        ["1", "&lt;b&gt;", "none", "2.000"], ["2", "none", "1", "2.500"], ["0", "0.1", "none", "3.000"],
    ]  # fmt: skip
    assert cells(importance_table(PICTURE)) == [["knob", "share"], ["optimizer.lr", "75%"]]
    assert importance_table(replace(PICTURE, importance_caveat="The rest.\nFew.")).endswith(
        '<p class="quiet">The rest.</p><p class="quiet">Few.</p>'
    )
