"""The speed picture: tokens per second, share of the peak, where a step's time goes, memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.plots.curves import Curve, curve, downsample, smooth, speed_curve
from workbench.plots.figure import finish, require, run_line, x_title
from workbench.plots.palette import placed, plotly_text
from workbench.telemetry.quantities import PARTS, scalar
from workbench.telemetry.speed import NOW

if TYPE_CHECKING:
    from workbench.store.view import RunView

OTHER, OTHER_COLOUR = "other", "#BBBBBB"
"""Time of a step that its parts do not explain."""


def speed_figure(views: Sequence[RunView], x: str = "step") -> go.Figure:
    """Return tokens/s, MFU in percent and memory in GiB over the run; a run's median step split into its parts.

    Args:
        views: the runs, one colour and dash each.
        x: ``step``, ``tokens``, ``seconds`` or ``flops``.

    Raises:
        ValueError: no runs, or an unknown x.
    """
    require(views, x)
    speed, mfu, memory = (scalar(name).label for name in ("tokens_per_second", "mfu", "memory_gib"))
    titles = (f"{speed}, {NOW}", mfu, "median step (ms)", memory)
    figure = make_subplots(rows=2, cols=2, subplot_titles=titles, horizontal_spacing=0.1, vertical_spacing=0.16)
    for index, view in placed(views):
        figure.add_trace(_over_time(view, index, "tokens_per_second", x, legend=True), row=1, col=1)
        figure.add_trace(_over_time(view, index, "mfu", x), row=1, col=2)
        figure.add_trace(_over_time(view, index, "memory_gib", x), row=2, col=2)
    splits = [median_split(view) for view in views]
    for part, colour in {**PARTS, OTHER: OTHER_COLOUR}.items():
        figure.add_trace(_part(views, splits, part, colour), row=2, col=1)
    figure.update_layout(title="Speed", barmode="stack")
    figure.update_yaxes(rangemode="tozero")
    figure.update_yaxes(autorange="reversed", row=2, col=1)
    for row, col in ((1, 1), (1, 2), (2, 2)):
        figure.update_xaxes(title_text=x_title(x), row=row, col=col)
    return finish(figure, views, x, height=640, panels=("", "2", "4"))


def median_split(view: RunView) -> dict[str, float]:
    """Return median milliseconds of each part of a step; ``other`` is what the parts do not explain.

    Returns:
        part -> ms, in the order of :data:`~workbench.telemetry.quantities.PARTS`; empty before anything was measured.
    """
    # Medians: one step that waited for an evaluation or a compiler would hide what all the others cost.
    medians = {part: _median(curve(view, f"{part}_ms")) for part in PARTS}
    whole = _median(curve(view, "step_ms"))
    if whole is None and all(value is None for value in medians.values()):
        return {}
    known = {part: value or 0.0 for part, value in medians.items()}
    # Medians of parts need not add up to the median of the whole; a negative bar would mean nothing. A step's own time
    # ends where its telemetry begins.
    explained = sum(value for part, value in known.items() if part != "telemetry")
    return {**known, OTHER: max(0.0, (whole or 0.0) - explained)}


def _median(line: Curve) -> float | None:
    finite = line.y_N[np.isfinite(line.y_N)]
    return float(np.median(finite)) if len(finite) else None


def _over_time(view: RunView, index: int, name: str, x: str, *, legend: bool = False) -> go.Scatter:
    if name == "tokens_per_second":
        line = downsample(speed_curve(view, x))
    else:
        line = downsample(curve(view, name, x) if name == "memory_gib" else smooth(curve(view, name, x), rate=True))
    return run_line(view, index, Curve(line.x_N, line.y_N * scalar(name).factor), legend=legend, hover=".4s")


def _part(views: Sequence[RunView], splits: Sequence[dict[str, float]], part: str, colour: str) -> go.Bar:
    shown = [(index, split) for index, split in enumerate(splits) if split]
    return go.Bar(
        # The index keeps two runs of one name apart; the tick text is the name alone.
        y=[f"{index + 1}. {plotly_text(views[index].name, 24)}" for index, _ in shown],
        x=[split[part] for _, split in shown],
        name=part, orientation="h", marker={"color": colour}, width=0.6,
        hovertemplate="%{x:.1f} ms<extra>" + part + "</extra>",
    )  # fmt: skip
