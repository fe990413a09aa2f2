"""The schedule picture: learning rate and every knob that moved, as the run really had them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.plots.curves import curve, downsample
from workbench.plots.figure import finish, require, run_line, x_title
from workbench.plots.palette import placed, plotly_text
from workbench.telemetry.quantities import scalar

if TYPE_CHECKING:
    from workbench.store.view import RunView

MOST_ROWS = 6


def schedule_figure(views: Sequence[RunView], x: str = "step") -> go.Figure:
    """Return one row per scheduled knob: the learning rate always, the others when they moved in at least one run.

    Args:
        views: the runs, one colour and dash each.
        x: ``step``, ``tokens``, ``seconds`` or ``flops``.

    Raises:
        ValueError: no runs, or an unknown x.
    """
    require(views, x)
    names = moving_knobs(views)
    titles = [plotly_text(scalar(name).label) for name in names]
    # The gap is a share of the whole height, which grows with the rows.
    figure = make_subplots(
        rows=len(names), cols=1, shared_xaxes=True, subplot_titles=titles, vertical_spacing=0.14 / len(names) ** 0.5
    )
    for row, name in enumerate(names, start=1):
        for index, view in placed(views):
            line = downsample(curve(view, name, x), 600)
            figure.add_trace(run_line(view, index, line, legend=row == 1, hover=".4g"), row=row, col=1)
    figure.update_layout(title="Schedules")
    figure.update_yaxes(rangemode="tozero")
    figure.update_xaxes(title_text=x_title(x), row=len(names), col=1)
    panels = ["", *(str(row) for row in range(2, len(names) + 1))]
    return finish(figure, views, x, height=180 + 170 * len(names), panels=panels)


def moving_knobs(views: Sequence[RunView]) -> list[str]:
    """Return ``lr`` and the scheduled knobs whose value changed in some run, at most :data:`MOST_ROWS`."""
    names = {name for view in views for record in view.telemetry.scalars for name in record}
    # Scheduled knobs are logged under their path, which holds a dot; no other scalar's name does.
    candidates = ["weight_decay", "layers_run", *sorted(name for name in names if "." in name)]
    # A knob that stands still is in the recipe's table; a flat line would take the place of one that moves.
    moved = [name for name in candidates if name in names and any(_moves(view, name) for view in views)]
    return ["lr", *moved][:MOST_ROWS]


def _moves(view: RunView, name: str) -> bool:
    values = curve(view, name).y_N
    finite = values[np.isfinite(values)]
    # Relative to the knob's own size: a learning rate of 1e-5 that halves has moved, float noise has not.
    return len(finite) > 1 and bool(np.ptp(finite) > 1e-9 * max(1e-12, float(np.abs(finite).max())))
