"""What the pictures share: event marks and templates."""

from __future__ import annotations

import plotly.graph_objects as go
import pytest

from workbench.plots.figure import mark_events, require, span, template


def test_events_are_marked_where_they_happened(view):
    figure = go.Figure()
    mark_events(figure, view, "tokens", panels=("", "2"), whose="run: ")
    assert sorted(shape.x0 for shape in figure.layout.shapes if shape.xref == "x") == [100 * 4096, 110 * 4096]
    assert {shape.yref for shape in figure.layout.shapes} == {"y domain", "y2 domain"}
    assert list(figure.data[0].text) == ["run: stage: layers 4 to 6 join", "run: knob: optimizer.lr 0.003 -&gt; 0.002"]


def test_templates_differ_in_their_text_colour():
    light, dark = template(), template(dark=True)
    assert light.layout.font.color != dark.layout.font.color
    assert light.layout.paper_bgcolor == "rgba(0,0,0,0)"


def test_require_and_span(view, plateau, empty):
    with pytest.raises(ValueError, match="no runs to draw"):
        require([])
    assert span([empty], "step") is None
    assert span([view, plateau, empty], "seconds") == (pytest.approx(0.512), pytest.approx(409.6))
