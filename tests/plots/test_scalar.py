"""Any recorded number as a figure, over any axis."""

from __future__ import annotations

import pytest

from workbench.plots.scalar import scalar_figure


def test_one_line_per_run_with_its_name(view, plateau):
    figure = scalar_figure([view, plateau], "step_ms", log=True)
    lines = [trace for trace in figure.data if trace.name in (view.name, plateau.name)]
    assert len(lines) == 2
    assert all(len(line.x) for line in lines)
    assert lines[0].line.color != lines[1].line.color
    assert (figure.layout.title.text, figure.layout.yaxis.type) == ("step time (ms)", "log")


def test_knobs_have_titles_and_unknown_numbers_are_told(view):
    assert scalar_figure([view], "lr").layout.title.text == "learning rate"
    assert scalar_figure([view], "no_such").layout.annotations[0].text == "nothing was measured"
    with pytest.raises(ValueError, match="no runs"):
        scalar_figure([], "lr")
