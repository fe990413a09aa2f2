"""The loss picture."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from workbench.plots.curves import ALL_SCORED
from workbench.plots.loss import LOSS_LINES, loss_figure
from workbench.telemetry.quantities import run_colour
from workbench.telemetry.streams import Telemetry

from .synthetic import ENTROPY, NEIGHBOURS, TRAINING_BASELINE, as_before


def _traces(figure):
    return {trace.name: trace for trace in figure.data}


def test_raw_smoothed_heldout_entropy_and_target(view):
    traces = _traces(loss_figure([view], target=5.0))
    assert traces["synthetic, raw"].opacity < 0.5
    assert np.std(np.diff(traces["synthetic, raw"].y)) > 2 * np.std(np.diff(traces["synthetic"].y))
    assert list(traces["synthetic, held-out loss at [MASK] (uses context)"].x) == [50, 100, 150, 200]
    assert traces["synthetic, held-out loss at [MASK] (uses context)"].marker.symbol == "circle", "as on the page"
    assert "smoothed exponentially. Circles: held-out text, hollow (~) on a part of its tokens, filled" in LOSS_LINES
    assert "at the end on all of them. Vertical lines: events" in LOSS_LINES, "as drawn"
    assert list(traces[f"word frequencies {ENTROPY:.2f}"].y) == [ENTROPY, ENTROPY]
    assert list(traces[f"neighbours {NEIGHBOURS:.2f}"].y) == [NEIGHBOURS, NEIGHBOURS]
    assert list(traces[f"training without context {TRAINING_BASELINE:.2f}"].y) == [TRAINING_BASELINE, TRAINING_BASELINE]
    assert list(traces["target 5.00"].y) == [5.0, 5.0]


def test_what_was_learned_stands_in_the_legend_and_no_words_lie_across_the_curves(view, plateau):
    figure = loss_figure([view, plateau], x="seconds")
    traces = _traces(figure)
    assert "slow one, held-out loss at [MASK] (learned: word frequencies)" in traces
    assert all("text" not in trace.mode for trace in figure.data if trace.mode)
    assert not figure.layout.annotations
    assert "would score" in traces[f"neighbours {NEIGHBOURS:.2f}"].hovertemplate


def test_a_legend_of_many_runs_leaves_the_plot_its_height(view, plateau):
    few = loss_figure([view]).layout.height
    four = [dataclasses.replace(each, id=f"{each.id}-{n}") for n, each in enumerate([view, plateau, view, plateau])]
    figure = loss_figure(four)
    entries = [trace for trace in figure.data if trace.legendgroup and trace.showlegend is not False]
    assert len(entries) == 9, "one per run and kind, and one for what is filled"
    # Each further run takes two lines of 19 pixels and the gap between groups, 10.
    assert figure.layout.height >= few + 3 * (2 * 19 + 10)


def test_scores_are_joined_as_on_the_page_and_their_rings_are_hollow_on_any_ground(view):
    ring = next(trace for trace in loss_figure([view]).data if "held-out" in trace.name)
    assert (ring.mode, ring.line.dash) == ("lines+markers", "2px,4px")
    assert ring.marker.color == "rgba(0,0,0,0)"


def test_the_curve_of_scores_ends_in_the_filled_one_of_all_tokens(view, plateau):
    figure = loss_figure([view, plateau])
    rings, whole = (next(t for t in figure.data if name in t.name) for name in ("held-out loss at", ALL_SCORED))
    assert (list(rings.x), list(whole.x)) == ([50, 100, 150, 200], [200])
    assert (whole.mode, whole.marker.color, whole.legendgroup) == ("markers", rings.line.color, view.id)
    assert ("~" in rings.hovertemplate, "~" in whole.hovertemplate) == (True, False)
    assert [trace.showlegend for trace in figure.data if trace.name == ALL_SCORED] == [True, False]
    going = loss_figure([dataclasses.replace(view, status="stopped")])
    assert [list(t.x) for t in going.data if "held-out" in t.name] == [[50, 100, 150, 200]], "of a part, each of them"


def test_runs_keep_the_colours_that_they_are_watched_in(view, plateau):
    figure = loss_figure([dataclasses.replace(view, place=3), dataclasses.replace(plateau, place=1)])
    colours = {trace.legendgroup: trace.line.color for trace in figure.data if trace.legendgroup and trace.line.color}
    assert colours == {view.id: run_colour(3), plateau.id: run_colour(1)}


def test_a_spike_does_not_squeeze_the_curve(view):
    scalars = [
        record | ({"loss": 40.0} if record["step"] == 120 and "loss" in record else {})
        for record in view.telemetry.scalars
    ]
    low, high = loss_figure([dataclasses.replace(view, telemetry=Telemetry(scalars))]).layout.yaxis.range
    assert (low, high) == pytest.approx(loss_figure([view]).layout.yaxis.range, abs=0.3)


def test_an_old_run_is_drawn_with_its_score_and_no_floor(view):
    traces = _traces(loss_figure([as_before(view)]))
    assert "synthetic, 80/10/10 score" in traces
    assert not [name for name in traces if "word frequencies" in name or "neighbours" in name]


@pytest.mark.parametrize("log", [False, True])
def test_a_far_floor_is_in_the_legend_and_does_not_squeeze_the_curves(view, plateau, log):
    figure = loss_figure([plateau], log=log)
    low = figure.layout.yaxis.range[0]
    assert NEIGHBOURS < (10**low if log else low) < ENTROPY
    assert f"neighbours {NEIGHBOURS:.2f} (below the picture)" in _traces(figure)
    # Near the curves it is shown, and a target is shown wherever it is.
    assert loss_figure([view]).layout.yaxis.range[0] < NEIGHBOURS
    assert loss_figure([plateau], target=2.0).layout.yaxis.range[0] < 2.0


def test_log_axis_and_no_smoothing(view):
    figure = loss_figure([view], log=True, smoothing=0)
    assert figure.layout.yaxis.type == "log"
    assert "synthetic, raw" not in _traces(figure)
    assert loss_figure([view], x="tokens").layout.xaxis.title.text == "tokens"


def test_nothing_yet(empty):
    figure = loss_figure([empty], target=5.0)
    assert [note.text for note in figure.layout.annotations] == ["nothing was measured"]


def test_names_are_text(evil):
    names = [trace.name for trace in loss_figure([evil]).data]
    assert not any("<" in name for name in names)


def test_wrong_requests(view):
    with pytest.raises(ValueError, match="no runs"):
        loss_figure([])
    with pytest.raises(ValueError, match="legal: flops, seconds, step, tokens"):
        loss_figure([view], x="epochs")


def test_boundaries_of_stages_are_named_for_a_single_run(view, plateau):
    figure = loss_figure([view], x="seconds")
    (note,) = figure.layout.annotations
    (line,) = [shape for shape in figure.layout.shapes if shape.line.dash == "dash"]
    assert (note.text, note.x) == ("stage 2 of 2", line.x0)
    assert not loss_figure([view, plateau]).layout.annotations


def test_events_stand_in_the_legend_once(view, plateau):
    figure = loss_figure([view, plateau])
    marks = [trace for trace in figure.data if trace.name == "events"]
    assert marks
    assert [trace.showlegend for trace in marks] == [True, *[False] * (len(marks) - 1)]
    assert marks[0].marker.symbol == "triangle-up"
    assert "triangle" in LOSS_LINES
