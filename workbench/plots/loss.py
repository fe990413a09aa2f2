"""The loss picture: training and held-out loss, what needs no context, and a target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from workbench.plots.curves import ALL_SCORED, Curve, curve, downsample, heldout_curve, heldout_scores, smooth
from workbench.plots.figure import EVENTS, finish, label_stages, require, span, x_title
from workbench.plots.levels import level_text, levels_of, loss_range
from workbench.plots.palette import placed, plotly_dash, plotly_text
from workbench.store.measured import heldout_loss
from workbench.telemetry.baselines import learned_briefly
from workbench.telemetry.quantities import LEVEL_DASHES, LEVEL_HELP, REFERENCE_COLOUR, SMOOTHING, run_colour, run_dash

if TYPE_CHECKING:
    from workbench.store.view import RunView

HELDOUT_SYMBOL = "circle"
LOSS_LINES = (
    f"Thin: raw training loss. Thick: the same, smoothed exponentially. {HELDOUT_SYMBOL.capitalize()}s: held-out text, "
    "hollow (~) on a part of its tokens, filled at the end on all of them. "
    "Vertical lines: events, such as a changed knob (dotted) or a new stage (dashed); point at one or its "
    "triangle to read which."
)
"""Words below a picture of losses on its marks."""
_HELDOUT_DASH = (2, 4)
"""Between two scores nothing was measured; as on the page."""
_RAW_OPACITY = 0.45
"""Behind the smoothed line, and still seen on a dark page: one figure is shown on both."""


def loss_figure(
    views: Sequence[RunView],
    x: str = "step",
    *,
    log: bool = False,
    smoothing: float = SMOOTHING,
    target: float | None = None,
) -> go.Figure:
    """Return loss in nats over steps, tokens or seconds.

    Per run: the raw training loss, thin; the same smoothed, thick; held-out losses as rings, the one at the
    end, on all tokens, filled, with the word for what was learned in the legend. Grey lines are the baselines
    (:class:`workbench.telemetry.baselines.References`); one that lies far from the curves is in the legend alone.

    Args:
        views: the runs, one colour and dash each.
        x: ``step``, ``tokens``, ``seconds`` or ``flops``.
        smoothing: as ``share`` of :func:`workbench.plots.curves.smooth`; 0 shows the raw line alone.
        target: a held-out loss in nats to reach, drawn as a line.

    Raises:
        ValueError: no runs, or an unknown x.

    Example:
        >>> from workbench import runs
        >>> figure = loss_figure([run.view() for run in runs()[:2]], x="tokens")  # doctest: +SKIP
    """
    require(views, x)
    figure = go.Figure()
    for index, view in placed(views):
        figure.add_traces(_training(view, index, x, smoothing))
        figure.add_traces(_heldout(view, index, x))
    levels, reach = levels_of(views, target), span(views, x)
    # Of what was measured: a smoothed line spreads a spike over its neighbours.
    measured = [line.y_N for view in views for line in (curve(view, "loss", x), heldout_curve(view, x))]
    shown = loss_range(measured, levels, log)
    if reach is not None:
        figure.add_traces([_level(reach, level.nats, level_text(level, shown), level.name) for level in levels])
    figure.update_layout(title="Loss", xaxis_title=x_title(x), yaxis_title="nats per predicted token")
    figure.update_yaxes(type="log" if log else "linear")
    if shown is not None:
        figure.update_yaxes(range=list(np.log10(shown)) if log else list(shown))
    finish(figure, views, x, height=460)
    # Once, of however many runs: without a word in the legend nobody knows what the triangles and their lines are.
    for name in (EVENTS, ALL_SCORED):
        for trace in [trace for trace in figure.data if trace.name == name][:1]:
            trace.showlegend = True
    # Of several runs, names of stages would lie over each other; their lines tell them on hover.
    return label_stages(figure, views[0], x, reach) if reach is not None and len(views) == 1 else figure


def _training(view: RunView, index: int, x: str, smoothing: float) -> list[go.Scatter]:
    raw = curve(view, "loss", x)
    name = plotly_text(view.name)
    # Two points have no noise to smooth away.
    if smoothing <= 0 or len(raw) < 3:
        return [_line(raw, view, index, name)]
    faint = downsample(raw)
    # Without hover: two answers under one pointer, the noisy one on top, would only confuse.
    behind = go.Scatter(
        x=faint.x_N, y=faint.y_N.astype("float32"), mode="lines", opacity=_RAW_OPACITY, showlegend=False,
        legendgroup=view.id, name=f"{name}, raw", line={"color": run_colour(index), "width": 1}, hoverinfo="skip",
    )  # fmt: skip
    return [behind, _line(smooth(raw, smoothing), view, index, name)]


def _line(line: Curve, view: RunView, index: int, name: str) -> go.Scatter:
    few = downsample(line)
    return go.Scatter(
        x=few.x_N, y=few.y_N.astype("float32"), mode="lines", name=name, legendgroup=view.id,
        line={"color": run_colour(index), "width": 2.2, "dash": plotly_dash(run_dash(index))},
        hovertemplate="%{y:.3f} nats at %{x:.4s}<extra>%{fullData.name}</extra>",
    )  # fmt: skip


def _heldout(view: RunView, index: int, x: str) -> list[go.Scatter]:
    line, whole = heldout_scores(view, x)
    word = view.references.learned(heldout_loss(view)) if len(line) else None
    colour = run_colour(index)
    # In the legend: beside its point the word would lie across the curves, which end there.
    name = f"{plotly_text(view.name)}, {view.references.title}" + (f" ({learned_briefly(word)})" if word else "")
    marker = {"symbol": HELDOUT_SYMBOL, "size": 8, "line": {"color": colour, "width": 2}}
    rings = go.Scatter(
        x=line.x_N, y=line.y_N, mode="lines+markers", name=name, legendgroup=view.id,
        line={"color": colour, "width": 1.25, "dash": plotly_dash(_HELDOUT_DASH)},
        # Not white, which would shine on a dark page.
        marker=marker | {"color": "rgba(0,0,0,0)"},
        hovertemplate="held-out ~%{y:.3f} nats at %{x:.4s}<extra>%{fullData.name}</extra>",
    )  # fmt: skip
    if not len(whole):
        return [rings]
    filled = go.Scatter(
        x=whole.x_N, y=whole.y_N, mode="markers", name=ALL_SCORED, legendgroup=view.id, showlegend=False, meta=name,
        marker=marker | {"color": colour},
        hovertemplate="held-out %{y:.3f} nats on all tokens at %{x:.4s}<extra>%{meta}</extra>",
    )  # fmt: skip
    return [rings, filled]


def _level(reach: tuple[float, float], height: float, text: str, name: str) -> go.Scatter:
    # A trace, not a shape: the same code is right on a logarithmic axis, and the legend can hide it.
    return go.Scatter(
        x=list(reach), y=[height, height], mode="lines", name=text,
        hovertemplate=f"{text}: {LEVEL_HELP[name]}<extra></extra>",
        line={"color": REFERENCE_COLOUR, "width": 1.5, "dash": plotly_dash(LEVEL_DASHES[name])},
    )  # fmt: skip
