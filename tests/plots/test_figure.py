"""What the pictures share: event marks and templates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest

from workbench.plots.curves import Curve
from workbench.plots.figure import finish, mark_events, require, run_line, span, template
from workbench.plots.palette import plotly_dash
from workbench.telemetry.quantities import run_colour, run_dash


def test_events_are_marked_where_they_happened(view):
    figure = go.Figure()
    mark_events(figure, view, "tokens", panels=("", "2"), whose="run: ")
    assert sorted(shape.x0 for shape in figure.layout.shapes if shape.xref == "x") == [100 * 4096, 110 * 4096]
    assert {shape.yref for shape in figure.layout.shapes} == {"y domain", "y2 domain"}
    assert list(figure.data[0].text) == [
        "run: stage 2 of 2: layers 4-6 added as copies of 1-3",
        "run: knob: optimizer.lr 0.003 -&gt; 0.002",
    ]


def test_events_of_several_runs_have_their_colours_and_words_wherever_their_lines_are_pointed_at(view, plateau):
    figure = finish(go.Figure(go.Scatter(x=[0], y=[0])), [view, plateau], "step")
    signs = [trace for trace in figure.data if trace.name == "events"]
    assert [trace.marker.color for trace in signs] == [run_colour(0), run_colour(1)]
    assert {shape.line.color for shape in figure.layout.shapes} == {run_colour(0), run_colour(1)}
    along = next(trace for trace in figure.data if trace.name == "events, along their lines")
    assert set(along.text) == set(signs[0].text)
    assert along.marker.opacity == 0
    heights = sorted({*along.y, *signs[0].y})
    # Lines of a figure are 250 pixels and more; Plotly answers within 20 of a point.
    assert (heights[0], heights[-1]) == pytest.approx((0.02, 0.98))
    assert max(np.diff(heights)) < 0.1


def test_what_people_asked_for_is_marked_and_what_a_run_does_by_itself_is_not(view):
    data = {"verb": "checkpoint", "done": True}
    asked = {"kind": "request", "data": data, "text": "checkpoint by ada: saved step-100"}
    events = [
        asked,
        asked | {"data": data | {"done": False}, "text": "refused"},
        asked | {"data": data | {"verb": "pause"}, "text": "has an event of its own"},
        {"kind": "request", **data, "text": "as runs of before wrote it"},
        {"kind": "checkpoint", "text": "saved step-100"},
        {"kind": "fork", "text": "run-b goes on from step 100"},
        {"kind": "memory", "text": "kept: 8 rows per micro-batch"},
    ]
    telemetry = replace(view.telemetry, events=[event | {"step": 100} for event in events])
    figure = go.Figure()
    mark_events(figure, replace(view, telemetry=telemetry), "step")
    assert list(figure.data[0].text) == [
        "request: checkpoint by ada: saved step-100",
        "request: as runs of before wrote it",
        "fork: run-b goes on from step 100",
        "memory: kept: 8 rows per micro-batch",
    ]


def test_templates_differ_in_their_text_colour():
    light, dark = template(), template(dark=True)
    assert light.layout.font.color != dark.layout.font.color
    assert light.layout.paper_bgcolor == light.layout.modebar.bgcolor == dark.layout.modebar.bgcolor == "rgba(0,0,0,0)"


def test_require_and_span(view, plateau, empty):
    with pytest.raises(ValueError, match="no runs to draw"):
        require([])
    assert span([empty], "step") is None
    assert span([view, plateau, empty], "seconds") == (pytest.approx(0.512), pytest.approx(409.6))


def test_lines_of_one_run_are_one_group_of_the_legend_in_its_colour(view):
    line = Curve(np.arange(3.0), np.array([1.0, np.nan, 3.0]))
    first, second = (run_line(view, 1, line, legend=legend, hover=".4g") for legend in (True, False))
    assert first.legendgroup == second.legendgroup == view.id
    assert (first.showlegend, second.showlegend) == (True, False)
    assert (first.line.color, first.line.dash) == (run_colour(1), plotly_dash(run_dash(1)))
    assert first.hovertemplate.startswith("%{y:.4g} at ")
    assert np.isnan(first.y[1]), "a gap stays a gap"
