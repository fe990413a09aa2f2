"""Names made safe."""

from __future__ import annotations

import plotly.graph_objects as go

from workbench.plots.palette import matplotlib_text, plotly_dash, plotly_text
from workbench.printable import plain


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
