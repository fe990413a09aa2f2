"""The layer picture: layers x time, what each layer does, or any number that the trainer says per layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.base.errors import check_known
from workbench.plots.activity import (
    Work,
    chosen_columns,
    column_edges,
    matrix,
    sentences,
    stage_starts,
    stages,
    state_codes,
    work,
)
from workbench.plots.curves import x_at_steps
from workbench.plots.figure import MODEBAR_PX, finish, label_stages, require, x_title
from workbench.plots.palette import plotly_text
from workbench.telemetry.quantities import LAYER_STATES, PER_LAYER, RAMP, SLICES, WORK_PARTS

if TYPE_CHECKING:
    from workbench.store.view import RunView

# Shape legend: L layers, K columns (telemetry records), S slices of a layer's row.

MOST_COLUMNS = 400
LAYER_TITLE = "layer (1 at the input)"


def layers_figure(view: RunView, quantity: str = "state", x: str = "step") -> go.Figure:
    """Heat map of one run: layer 1 (next to the embedding) at the bottom, time to the right.

    The activity comes with two strips: how many layers were computed and trained at each time, below, and the share
    of the run in which each layer was, at the right. What stays empty there is work that the method saved.

    Args:
        quantity: a key of :data:`~workbench.telemetry.quantities.PER_LAYER`; ``state`` shows what each layer does, in
        words. x: ``step``, ``tokens``, ``seconds`` or ``flops``.

    Raises:
        ValueError: an unknown quantity or x.
    """
    require([view], x)
    check_known("quantity", quantity, PER_LAYER, ValueError)
    records = [record for record in view.telemetry.layers if record.get(quantity) is not None]
    title = f"Layers: {PER_LAYER[quantity].label}, {plotly_text(view.name)}"
    if quantity == "state" and records:
        return _activity(view, records, x, title)
    figure = go.Figure()
    if records:
        values_LK = matrix(records, quantity)
        columns = chosen_columns(_starts(records), MOST_COLUMNS)
        steps_K = [records[k]["step"] for k in columns]
        figure.add_trace(_numbers(values_LK[:, columns], x_at_steps(view, steps_K, x), quantity))
        _layer_axis(figure, len(values_LK))
    figure.update_layout(title=title)
    figure.update_layout(xaxis_title=x_title(x), yaxis_title=LAYER_TITLE)
    figure.update_xaxes(showgrid=False)
    figure.update_yaxes(showgrid=False)
    return finish(figure, [view], x, height=380)


def available(view: RunView) -> list[str]:
    """Return the quantities that this run has said, in the order of their declaration."""
    names = {name for record in view.telemetry.layers for name, value in record.items() if value is not None}
    return [name for name in PER_LAYER if name in names]


def _starts(records: list[dict[str, Any]]) -> np.ndarray:
    """Return where stages start among records that may lack a state, (K,)."""
    if all(record.get("state") for record in records):
        return stage_starts(state_codes(matrix(records, "state")))
    return np.zeros(len(records), bool)


def _activity(view: RunView, records: list[dict[str, Any]], x: str, title: str) -> go.Figure:
    found, done = stages(view.telemetry.events), work(records)
    codes_LK = state_codes(matrix(records, "state"))
    columns = chosen_columns(stage_starts(codes_LK), MOST_COLUMNS)
    steps_K = np.array([records[k]["step"] for k in columns])
    edges = x_at_steps(view, column_edges(steps_K, [stage.step for stage in found]).tolist(), x)
    codes_LK = codes_LK[:, columns]
    figure = make_subplots(
        rows=2, cols=2, shared_xaxes="columns", shared_yaxes="rows", column_widths=[0.86, 0.14],
        row_heights=[0.7, 0.3], horizontal_spacing=0.015, vertical_spacing=0.06, specs=[[{}, {}], [{}, None]],
    )  # fmt: skip
    figure.add_traces(_states(codes_LK, edges, steps_K, sentences(codes_LK, steps_K.tolist(), found)), rows=1, cols=1)
    for trace in _legend(codes_LK):
        figure.add_trace(trace, row=1, col=1)
    for trace in _counts(done, columns, edges, steps_K):
        figure.add_trace(trace, row=2, col=1)
    for trace in _shares(done):
        figure.add_trace(trace, row=1, col=2)
    layers = len(codes_LK)
    # Of two lines the first stands higher than a title of one.
    title_place = {"text": f"{title}<br><sub>{done.summary()}</sub>", "pad": {"t": MODEBAR_PX + 10}}
    figure.update_layout(title=title_place, barmode="stack", bargap=0.25)
    figure.update_xaxes(showgrid=False)
    figure.update_yaxes(showgrid=False)
    figure.update_xaxes(title_text=x_title(x), range=[edges[0], edges[-1]], row=2, col=1)
    figure.update_xaxes(range=[edges[0], edges[-1]], row=1, col=1)
    figure.update_xaxes(range=[0, 1], tickformat=".0%", tickvals=[0, 0.5, 1], title_text="of the run", row=1, col=2)
    figure.update_yaxes(title_text=LAYER_TITLE, row=1, col=1)
    figure.update_yaxes(title_text="layers at work", range=[0, layers], nticks=5, row=2, col=1)
    for column in (1, 2):
        _layer_axis(figure, layers, row=1, col=column)
    finish(figure, [view], x, height=520, panels=("", "3"))
    # Room for two lines of title and the names of the stages; the legend only explains, a click could hide nothing.
    figure.update_layout(
        margin={"t": 106}, legend={"traceorder": "normal", "itemclick": False, "itemdoubleclick": False}
    )
    return label_stages(figure, view, x, (edges[0], edges[-1]))


def _layer_axis(figure: go.Figure, layers: int, **where: int) -> None:
    figure.update_yaxes(range=[0.5, layers + 0.5], dtick=max(1, layers // 12), tick0=1, **where)


def _states(codes_LK: np.ndarray, edges: np.ndarray, steps_K: np.ndarray, texts: list[list[str]]) -> list[go.Heatmap]:
    """Return what is seen, a heat map of slices; and above it one without ink, of layers, that answers the pointer."""
    layers = len(codes_LK)
    ink_CS = np.array([[mark == "#" for mark in state.shape] for state in LAYER_STATES])
    ink_LSK = ink_CS[codes_LK].transpose(0, 2, 1)
    slices = np.where(ink_LSK, codes_LK[:, None, :], np.nan).reshape(layers * SLICES, -1)
    # Each colour at both ends of its stretch: given once, Plotly would blend it into the next.
    ends = np.arange(len(LAYER_STATES) + 1) / len(LAYER_STATES)
    colours = [_rgba(state.colour, state.opacity) for state in LAYER_STATES]
    scale = [[edge, colour] for i, colour in enumerate(colours) for edge in (ends[i], ends[i + 1])]
    seen = go.Heatmap(
        z=slices.astype("float32"), x=edges, y=0.5 + np.arange(layers * SLICES + 1) / SLICES, colorscale=scale,
        zmin=-0.5, zmax=len(LAYER_STATES) - 0.5, showscale=False, hoverinfo="skip", hoverongaps=False,
    )  # fmt: skip
    hover = go.Heatmap(
        z=codes_LK, x=edges, y=np.arange(1, layers + 1), text=texts, customdata=np.tile(steps_K, (layers, 1)),
        opacity=0, showscale=False, hovertemplate="Layer %{y} at step %{customdata}: %{text}<extra></extra>",
    )  # fmt: skip
    return [seen, hover]


def _rgba(colour: str, opacity: float) -> str:
    return f"rgba({','.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))},{opacity})"


def _legend(codes_LK: np.ndarray) -> list[go.Scatter]:
    """Return one entry per state that occurs, with its shape as a character; nothing is drawn."""
    entries = []
    for code, state in enumerate(LAYER_STATES):
        if (codes_LK == code).any():
            name = f'<span style="color:{state.colour}">{state.mark}</span> {state.words}'
            entries.append(go.Scatter(x=[None], y=[None], mode="lines", line={"width": 0}, name=name, hoverinfo="skip"))
    return entries


def _counts(done: Work, columns: np.ndarray, edges: np.ndarray, steps_K: np.ndarray) -> list[go.Scatter]:
    """Return layers computed at each time, as stairs; filled down to the axis, the trained ones in front."""
    traces = []
    for part, shares_LK in zip(WORK_PARTS, (done.forward_LK, done.trained_LK), strict=True):
        count_K = shares_LK.sum(axis=0)[columns]
        traces.append(
            go.Scatter(
                # A stair holds its value from its left end: the last one needs its right end as well.
                x=edges, y=np.append(count_K, count_K[-1:]).astype("float32"), mode="lines", fill="tozeroy",
                line={"shape": "hv", "width": 0, "color": part.colour}, fillcolor=part.colour, showlegend=False,
                name=part.words, customdata=np.append(steps_K, steps_K[-1:]),
                hovertemplate=f"step %{{customdata}}: %{{y:.1f}} layers {part.done}<extra></extra>",
            )
        )  # fmt: skip
    return traces


def _shares(done: Work) -> list[go.Bar]:
    """Return per layer, the share of the run in which it was trained, and on top of it was only computed."""
    forward, trained = WORK_PARTS
    layer_L = np.arange(1, len(done.forward_LK) + 1)
    bars = ((trained, done.trained), (forward, done.forward - done.trained))
    return [
        go.Bar(
            x=share_L.astype("float32"), y=layer_L, orientation="h",
            showlegend=False, marker={"color": part.colour, "line": {"width": 0}}, name=part.words,
            hovertemplate=f"layer %{{y}}: %{{x:.0%}} of the run {part.words}<extra></extra>",
        )
        for part, share_L in bars
    ]  # fmt: skip


def _numbers(values_LK: np.ndarray, where_K: np.ndarray, quantity: str) -> go.Heatmap:
    shown_LK = values_LK
    bar: dict[str, Any] = {"title": {"text": PER_LAYER[quantity].label, "side": "right"}, "thickness": 14}
    # Coloured by their power of ten.
    if PER_LAYER[quantity].scale == "log":
        with np.errstate(divide="ignore", invalid="ignore"):
            # A frozen layer's zero has no logarithm; it stays empty instead of pulling the scale to minus infinity.
            shown_LK = np.where(values_LK > 0, np.log10(values_LK), np.nan)
        bar |= {"tickprefix": "10^", "tickformat": ".1f"}
    with np.errstate(over="ignore"):
        shown_LK, values_LK = shown_LK.astype("float32"), values_LK.astype("float32")
    return go.Heatmap(
        z=shown_LK, customdata=values_LK, x=where_K,
        y=np.arange(1, len(values_LK) + 1), colorscale=list(RAMP), colorbar=bar, xgap=0, ygap=1,
        hovertemplate="layer %{y} at %{x:.4s}: %{customdata:.4g}<extra></extra>",
    )  # fmt: skip
