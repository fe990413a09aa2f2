"""Any number that a run has recorded, over the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import plotly.graph_objects as go

from workbench.plots.curves import Curve, curve, downsample
from workbench.plots.figure import finish, require, run_line, x_title
from workbench.plots.palette import placed, plotly_text
from workbench.telemetry.quantities import scalar

if TYPE_CHECKING:
    from workbench.store.view import RunView


def scalar_figure(views: Sequence[RunView], name: str, x: str = "step", *, log: bool = False) -> go.Figure:
    """Return any recorded number over the run.

    Args:
        views: the runs, one colour and dash each.
        x: ``step``, ``tokens``, ``seconds`` or ``flops``.

    Raises:
        ValueError: no runs, or an unknown x.
    """
    require(views, x)
    quantity = scalar(name)
    title = plotly_text(quantity.label)
    figure = go.Figure()
    for index, view in placed(views):
        line = downsample(curve(view, name, x))
        drawn = Curve(line.x_N, line.y_N * quantity.factor)
        figure.add_trace(run_line(view, index, drawn, legend=True, hover=".4g"))
    figure.update_layout(title=title, xaxis_title=x_title(x), yaxis_title=title)
    figure.update_yaxes(type="log" if log else "linear")
    return finish(figure, views, x)
