"""Names made safe."""

from __future__ import annotations

import dataclasses

import plotly.graph_objects as go

from workbench.base.text import plain
from workbench.plots.palette import matplotlib_text, placed, places, plotly_dash, plotly_text


def test_a_run_keeps_its_place_while_others_come_and_go():
    assert places(["a", "b"]) == {"a": 0, "b": 1}
    assert places(["b", "c", "d"], {"a": 0, "b": 1}) == {"b": 1, "c": 0, "d": 2}
    assert list(places(["c", "b"], {"b": 5})) == ["c", "b"]


def test_runs_are_drawn_where_they_are_watched_else_in_their_order(view, plateau):
    assert placed([view, plateau]) == [(0, view), (1, plateau)]
    watched = dataclasses.replace(plateau, place=0)
    assert placed([view, watched]) == [(1, view), (0, watched)]


def test_dashes_as_plotly_takes_them():
    go.Scatter(line={"dash": plotly_dash((8, 3, 2, 3))})
    assert [plotly_dash(dash) for dash in ((), (9, 4))] == ["solid", "9px,4px"]


def test_plain_keeps_one_printable_line():
    assert plain("a\x00b\nc\ud800d") == "a b c d"
    assert len(plain("x" * 500)) == 48
    plain("\ud800").encode("utf-8")


def test_renderers_get_no_markup():
    assert plotly_text("<a href='javascript:x'>") == "&lt;a href='javascript:x'&gt;"
    assert matplotlib_text("_$x$") == r" _\$x\$"
    assert "\\" not in matplotlib_text("\\$").replace(r"\$", "")
