"""The loss picture."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.plots.loss import loss_figure

from .synthetic import ENTROPY, NEIGHBOURS, TRAINING_FLOOR, as_before


def _traces(figure):
    return {trace.name: trace for trace in figure.data}


def test_raw_smoothed_heldout_entropy_and_target(view):
    traces = _traces(loss_figure([view], target=5.0))
    assert traces["synthetic, raw"].opacity < 0.5
    assert np.std(np.diff(traces["synthetic, raw"].y)) > 2 * np.std(np.diff(traces["synthetic"].y))
    assert list(traces["synthetic, held-out loss at [MASK]"].x) == [50, 100, 150, 200]
    assert list(traces[f"word frequencies {ENTROPY:.2f}"].y) == [ENTROPY, ENTROPY]
    assert list(traces[f"neighbours {NEIGHBOURS:.2f}"].y) == [NEIGHBOURS, NEIGHBOURS]
    assert list(traces[f"training without context {TRAINING_FLOOR:.2f}"].y) == [TRAINING_FLOOR, TRAINING_FLOOR]
    assert list(traces["target 5.00"].y) == [5.0, 5.0]


def test_the_last_point_of_each_run_carries_its_word(view, plateau):
    traces = _traces(loss_figure([view, plateau], x="seconds"))
    assert traces["slow one, held-out loss at [MASK]"].text == ("", "", "", "word frequencies")
    assert traces["synthetic, held-out loss at [MASK]"].text[-1] == "context"


def test_an_old_run_is_drawn_with_its_score_and_no_floor(view):
    traces = _traces(loss_figure([as_before(view)]))
    assert set(traces["synthetic, 80/10/10 score"].text) == {""}
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
