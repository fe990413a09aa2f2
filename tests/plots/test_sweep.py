"""Pictures of a sweep: what lies where, and names that are no markup."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from matplotlib.figure import Figure

from workbench.plots.sweep import (
    Dot,
    SweepPicture,
    draw_means,
    importance_figure,
    knob_figure,
    parallel_figure,
    pareto_figure,
    scale_of,
    sweep_png,
)  # fmt: skip
from workbench.telemetry.quantities import REFERENCE_COLOUR, run_colour

DOTS = [
    Dot(0, "<b>a", {"lr": 1e-3, "kind": "full"}, 3.0, [2.9, 3.1], 10.0, 2e9, 1e6),
    Dot(1, "b", {"lr": 1e-2, "kind": "drop", "theta": 0.5}, 2.5, [2.5], 20.0, 2e9, 1e6),
    Dot(2, "c", {"lr": 1e-1, "kind": "drop", "theta": 0.7}, 3.5, [3.5], 30.0, 3e9, 2e6),
]
PICTURE = SweepPicture("nats", DOTS, ["lr", "kind", "theta"], ["lr"], {"lr": 0.7, "kind": 0.2}, "share")


def test_knobs_lie_on_their_own_scales() -> None:
    assert scale_of(PICTURE, "lr") == ([-3, -2, -1], [(-3, "0.001"), (-2, "0.01"), (-1, "0.1")])
    assert scale_of(PICTURE, "kind") == ([0, 1, 1], [(0, "full"), (1, "drop")])
    places, ticks = scale_of(PICTURE, "theta")
    assert math.isnan(places[0])
    assert ticks == [(0.5, "0.5"), (0.7, "0.7")]


def test_numbers_that_were_drawn_have_round_ticks_on_an_axis_that_says_its_scale() -> None:
    drawn = [0.00012345678, 0.0011234567, 0.0012345678, 0.0091234567]
    picture = replace(PICTURE, dots=[Dot(at, "", {"lr": lr}, 4.517441, [4.517441]) for at, lr in enumerate(drawn)])
    places, ticks = scale_of(picture, "lr")
    assert places == [math.log10(lr) for lr in drawn]
    assert [text for _, text in ticks] == ["0.0002", "0.0005", "0.001", "0.002", "0.005"]
    assert knob_figure(picture, "lr").layout.xaxis.title.text == "lr (log)"
    *_, score = parallel_figure(picture).data[0].dimensions
    assert (score.tickformat, score.range) == (".3f", (4.517441 * 0.9, 4.517441 * 1.1))
    assert parallel_figure(picture).data[0].dimensions[0].label == "lr (log)"
    assert parallel_figure(PICTURE).data[0].dimensions[3].range is None


def test_neighbours_whose_labels_would_overlap_share_one_tick() -> None:
    picture = replace(PICTURE, dots=[Dot(at, "", {"lr": lr}, 1.0) for at, lr in enumerate((1e-3, 1.05e-3, 1e-2, 0.1))])
    assert [text for _, text in scale_of(picture, "lr")[1]] == ["0.001", "0.01", "0.1"]
    assert [text for _, text in scale_of(picture, "lr", 0.6)[1]] == ["0.001", "0.1"]


def test_the_front_is_joined_and_the_beaten_are_shown() -> None:
    beaten, kept = pareto_figure(PICTURE, "seconds").data
    assert (list(kept.customdata), list(beaten.customdata)) == (["0", "1"], ["2"])
    assert kept.line.shape == "hv"
    assert list(pareto_figure(PICTURE, "memory_bytes").data[1].customdata) == ["1"]
    assert pareto_figure(PICTURE, "memory_bytes").layout.xaxis.title.text == "memory (MiB, forecast)"
    assert list(pareto_figure(PICTURE, "memory_bytes").data[1].x) == [DOTS[1].memory_bytes / 2**20]
    assert "<b>a" not in kept.text[0]


def test_costs_that_are_alike_make_no_front() -> None:
    dots = [replace(dot, seconds=15 + 0.2 * dot.index) for dot in DOTS]
    beaten, kept = pareto_figure(replace(PICTURE, dots=dots), "seconds").data
    assert (list(kept.customdata), list(beaten.customdata)) == (["1"], ["0", "2"])


def test_costs_that_are_equal_stand_in_the_middle_of_an_axis() -> None:
    beaten, kept = (figure := pareto_figure(replace(PICTURE, dots=DOTS[:2]), "parameters")).data
    assert (beaten.name, kept.name) == ("beaten", "on the front"), "its parameters are those of the best"
    axis = figure.layout.xaxis
    assert (axis.range, axis.tickvals) == ((0.9e6, 1.1e6), (1e6,))
    assert pareto_figure(PICTURE, "parameters").layout.xaxis.range is None


def test_every_seed_is_a_point_beside_the_mean() -> None:
    seeds, means = knob_figure(PICTURE, "lr").data
    assert (list(seeds.x), list(seeds.y)) == ([-3, -3, -2, -1], [2.9, 3.1, 2.5, 3.5])
    assert list(means.y) == [3.0, 2.5, 3.5]
    assert list(knob_figure(PICTURE, "theta").data[1].customdata) == ["1", "2"], "a point without the knob is left out"


def test_all_knobs_at_once_keep_a_point_without_one_of_them() -> None:
    (lines,) = parallel_figure(PICTURE).data
    theta = lines.dimensions[2]
    assert theta.ticktext[0] == "none"
    assert theta["values"][0] == theta.tickvals[0] < 0.5
    assert list(lines.dimensions[3]["values"]) == [3.0, 2.5, 3.5]
    bars = importance_figure(PICTURE).data[0]
    assert (list(bars.y), list(bars.x)) == (["kind", "lr"], [0.2, 0.7])


def test_shares_are_drawn_with_what_they_leave_out() -> None:
    figure = importance_figure(replace(PICTURE, importance_caveat="The rest: chance.\nOnly 3 points."))
    assert figure.layout.title.text == (
        "Importance of knobs<br><sup>The rest: chance.</sup><br><sup>Only 3 points.</sup>"
    )


@pytest.mark.parametrize("dots", [DOTS[:1], DOTS, [replace(dot, seconds=5.0) for dot in DOTS]])
def test_the_saved_picture_is_drawn_whatever_there_is(dots: list[Dot]) -> None:
    picture = SweepPicture("nats", dots, ["lr", "kind"], ["lr"])
    assert picture.differs("seconds") == (dots is DOTS)
    assert sweep_png(picture).startswith(b"\x89PNG")


def test_a_point_has_one_colour_in_every_panel_of_the_saved_picture() -> None:
    axes = Figure().subplots()
    draw_means(axes, [1.0, 2.0, 3.0], [2.0, 1.0, 3.0], kept=[1])
    drawn = {float(x): line.get_color() for line in axes.lines for x in line.get_xdata()}
    assert drawn == {1.0: REFERENCE_COLOUR, 2.0: run_colour(0), 3.0: REFERENCE_COLOUR}
