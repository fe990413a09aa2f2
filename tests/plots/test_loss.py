"""The loss picture."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.plots.loss import PLATEAU_WORDS, loss_figure

from .synthetic import ENTROPY


def _traces(figure):
    return {trace.name: trace for trace in figure.data}


def test_raw_smoothed_heldout_entropy_and_target(view):
    traces = _traces(loss_figure([view], target=5.0))
    assert traces["synthetic, raw"].opacity < 0.5
    assert np.std(np.diff(traces["synthetic, raw"].y)) > 2 * np.std(np.diff(traces["synthetic"].y))
    assert list(traces["synthetic, held-out"].x) == [50, 100, 150, 200]
    assert list(traces[f"unigram entropy {ENTROPY:.2f}: word frequencies only"].y) == [ENTROPY, ENTROPY]
    assert list(traces["target 5.00"].y) == [5.0, 5.0]


def test_only_the_run_on_the_plateau_is_told_so(view, plateau):
    traces = _traces(loss_figure([view, plateau], x="seconds"))
    assert traces["slow one, held-out"].text[-1] == PLATEAU_WORDS
    assert set(traces["synthetic, held-out"].text) == {""}


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
