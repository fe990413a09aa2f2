"""Pictures of a race: bands, intervals, and pictures of nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from workbench.plots.curves import ALL_SCORED, Curve
from workbench.plots.race import (
    Arm,
    Gap,
    RacePicture,
    Reach,
    band,
    ends_band,
    race_curves,
    race_differences,
    race_png,
    race_range,
)


def line(*losses: float, seconds: float = 1.0) -> Curve:
    return Curve(np.arange(1, len(losses) + 1) * seconds, np.array(losses))


MINE = ["mine seed 0", "mine seed 3"]


@pytest.fixture
def picture() -> RacePicture:
    arms = [Arm("baseline", [line(3, 2, 1), line(5, 4, 3)]), Arm("<b>mine", [line(2, 1)]), Arm("none yet", [])]
    gaps = [Gap("<b>mine", [-0.1, -0.2], -0.15, -0.3, -0.01, "better", [0, 3], MINE), Gap("none yet", [])]
    return RacePicture("nats", "reference seconds", arms, gaps, 0.02, {"word frequencies": 3.5})


def test_a_band_is_drawn_as_far_as_all_seeds_have_got() -> None:
    x_P, mean_P, low_P, high_P = band([line(3, 2, 1), line(5, 4)])
    assert x_P.tolist() == [1, 2]
    assert mean_P.tolist() == [4, 3]
    assert (low_P.tolist(), high_P.tolist()) == ([3, 2], [5, 4])
    # Seeds that were scored at other places.
    assert band([line(3, 2, 1), line(3, 1, seconds=1.5)])[1].tolist() == pytest.approx([3, (2 + 7 / 3) / 2, 1])
    assert all(len(part) == 0 for part in band([]))


def test_curves_have_a_band_and_a_mean_per_arm(picture: RacePicture) -> None:
    figure = race_curves(picture)
    means = [trace for trace in figure.data if trace.mode == "lines+markers"]
    assert [trace.name for trace in means] == ["baseline (2 seeds)", "&lt;b&gt;mine (1 seed)", "none yet (0 seeds)"]
    assert list(means[0].y) == [4, 3, 2]
    bands = [trace for trace in figure.data if trace.fill == "toself"]
    assert list(bands[0].y) == [5, 4, 3, 1, 2, 3]
    assert [shape.y0 for shape in figure.layout.shapes] == [3.5]
    assert figure.layout.xaxis.title.text == "reference seconds"


def test_scores_of_all_tokens_are_filled_and_joined_to_none_of_a_part(picture: RacePicture) -> None:
    ends = [Curve(np.array([4.0]), np.array([loss])) for loss in (0.5, 1.5)]
    ended = replace(picture, arms=[replace(arm, ends=ends if arm.lines else []) for arm in picture.arms])
    figure = race_curves(ended)
    line, whole, other = (figure.data[place] for place in (1, 2, 5))
    assert (list(line.y), line.marker.color, "~" in line.hovertemplate) == ([4, 3, 2], "rgba(0,0,0,0)", True)
    assert (whole.mode, list(whole.x), list(whole.y), whole.marker.color) == ("markers", [4], [1], line.line.color)
    assert (whole.error_y.array[0], whole.error_y.arrayminus[0]) == (0.5, 0.5), "from the best to the worst seed"
    assert ([whole.name, other.name], [whole.showlegend, other.showlegend]) == ([ALL_SCORED] * 2, [True, False])
    assert [len(part) for part in ends_band(picture.arms[0])] == [0] * 4
    assert race_png(ended) != race_png(picture)


def test_the_baselines_final_score_is_a_line_and_whoever_gets_there_a_mark(picture: RacePicture) -> None:
    found = replace(picture, target=2.0, reaches=[Reach("<b>mine", 1.5, 1.2, 1.9)])
    figure = race_curves(found)
    assert [shape.y0 for shape in figure.layout.shapes] == [3.5, 2.0]
    mark = figure.data[-1]
    assert (mark.x, mark.y, mark.name) == ((1.5,), (2.0,), "&lt;b&gt;mine")
    assert (mark.error_x.array[0], mark.error_x.arrayminus[0]) == pytest.approx((0.4, 0.3))
    assert mark.marker.color == figure.data[3].line.color, "in the colour of its curve"
    assert race_png(found) != race_png(picture)


def test_differences_have_their_seeds_and_their_interval(picture: RacePicture) -> None:
    figure = race_differences(picture)
    points, mean, empty = figure.data
    assert list(points.x) == [-0.1, -0.2]
    assert list(points.text) == ["0", "3"]
    assert list(points.customdata) == MINE, "what a click on the dot of a seed opens"
    assert (mean.error_x.array[0], mean.error_x.arrayminus[0]) == pytest.approx((0.14, 0.15))
    assert mean.text == ("better",)
    assert len(empty.x) == 0
    stripe = figure.layout.shapes[0]
    assert (stripe.x0, stripe.x1) == (-0.02, 0.02)


def test_a_level_far_from_the_curves_is_left_out(picture: RacePicture) -> None:
    far = replace(picture, levels={"word frequencies": 3.5, "neighbours": -2.0})
    assert [shape.y0 for shape in race_curves(far).layout.shapes] == [3.5]
    assert race_range(replace(far, arms=[])) is None


@pytest.mark.parametrize("wild", [(7.0, 300.0, 4e4), (7.0, np.nan, np.inf)])
def test_an_arm_that_diverges_sets_no_axis_and_is_marked(wild: tuple[float, ...]) -> None:
    calm = [Arm("baseline", [line(7, 6, 5), line(7.2, 6.1, 5.1)]), Arm("mine", [line(7, 6.2, 5.5)])]
    gaps = [Gap("mine", [0.4], 0.4, 0.2, 0.6, "worse", [0]), Gap("wild", [4e4], 4e4, 3e4, 5e4, "worse", [0])]
    picture = RacePicture("nats", "s", [*calm, Arm("wild", [line(*wild)])], gaps, 0.02)
    assert race_range(picture) == race_range(replace(picture, arms=calm))
    figure = race_curves(picture)
    low, high = figure.layout.yaxis.range
    assert (low < 5, 7.2 < high < 8) == (True, True)
    far = [trace for trace in figure.data if trace.hovertemplate and "outside the picture" in trace.hovertemplate]
    assert [(trace.name, set(trace.marker.symbol), set(trace.y)) for trace in far] == [
        ("wild", {"triangle-up"}, {high})
    ]
    assert list(far[0].text) == [f"{value:.4g}" for value in wild if not value < 8]
    apart = race_differences(picture)
    assert apart.layout.xaxis.range[1] < 1
    mark = apart.data[-1]
    assert (mark.name, mark.marker.symbol, mark.x) == ("wild", ("triangle-right",), (apart.layout.xaxis.range[1],))
    assert race_png(picture).startswith(b"\x89PNG")


def test_an_arm_that_is_merely_worse_is_shown_whole(picture: RacePicture) -> None:
    assert race_differences(picture).layout.xaxis.range is None
    figure = race_curves(picture)
    low, high = figure.layout.yaxis.range
    # The band of the baseline reaches to 5, more than twice as high as the other arm.
    assert low < 1
    assert high > 4


def test_the_same_without_a_browser(picture: RacePicture) -> None:
    assert race_png(picture).startswith(b"\x89PNG")
    empty = RacePicture("nats", "s", [Arm("a", []), Arm("b", [])], [Gap("b", [])], 0.02)
    assert len(race_png(empty)) > 1000
    for drawn, why in (
        (race_curves(empty), "no run has been scored yet"),
        (race_differences(empty), "no seed has ended"),
    ):
        assert drawn.layout.annotations[0].text.startswith(why)
        assert not drawn.layout.xaxis.visible, "axes without a number would have numbers of their own"
        assert not drawn.layout.shapes
