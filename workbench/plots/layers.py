"""The layer picture: layers x time, what each layer does, or any number that the trainer says per layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from workbench.errors import unknown
from workbench.plots.curves import x_at_steps
from workbench.plots.figure import finish, require, x_title
from workbench.plots.palette import STATE_COLOURS, STATE_WORDS, STATES, plotly_text
from workbench.telemetry import number

if TYPE_CHECKING:
    from workbench.runs.view import RunView

# Shape legend: L layers, K columns (telemetry records).

QUANTITIES = {
    "state": "activity",
    "ran": "share of micro-batches in which it ran",
    "keep": "keep probability",
    "scale": "residual scale",
    "grad_norm": "gradient norm",
    "update_ratio": "update / weight",
    "activation_rms": "activation RMS",
    "attention_entropy": "attention entropy (nats)",
    "trust_ratio": "trust ratio",
}
LOGARITHMIC = ("grad_norm", "update_ratio", "trust_ratio")
"""Quantities that differ by orders of magnitude between layers: coloured by their power of ten."""
MOST_COLUMNS = 400


def layers_figure(view: RunView, quantity: str = "state", x: str = "step") -> go.Figure:
    """Heat map of one run: layer 1 (next to the embedding) at the bottom, time to the right.

    Args:
        view: the run.
        quantity: a key of :data:`QUANTITIES`; ``state`` shows running, dropped, frozen and not yet grown.
        x: ``step``, ``tokens`` or ``seconds``.

    Raises:
        ValueError: an unknown quantity or x.
    """
    require([view], x)
    if quantity not in QUANTITIES:
        raise ValueError(unknown("quantity", quantity, QUANTITIES))
    records = [record for record in view.telemetry.layers if record.get(quantity) is not None]
    # Whole records, never means of neighbours: the mean of "running" and "frozen" would be read as "dropped".
    records = records[:: max(1, -(-len(records) // MOST_COLUMNS))]
    figure = go.Figure()
    if records:
        values_LK = _matrix(records, quantity)
        where_K = x_at_steps(view, [record["step"] for record in records], x)
        draw = _states if quantity == "state" else _numbers
        figure.add_trace(draw(values_LK, where_K, quantity))
        rows = len(values_LK)
        figure.update_yaxes(range=[0.5, rows + 0.5], dtick=max(1, rows // 12), tick0=1)
    name = plotly_text(view.name)
    figure.update_layout(title=f"Layers: {QUANTITIES[quantity]}, {name}")
    figure.update_layout(xaxis_title=x_title(x), yaxis_title="layer (1 is next to the embedding)")
    figure.update_xaxes(showgrid=False)
    figure.update_yaxes(showgrid=False)
    return finish(figure, [view], x, height=380)


def available(view: RunView) -> list[str]:
    """The quantities that this run has said, in the order of :data:`QUANTITIES`."""
    said = {name for record in view.telemetry.layers for name, value in record.items() if value is not None}
    return [name for name in QUANTITIES if name in said]


def _matrix(records: list[dict[str, Any]], quantity: str) -> np.ndarray:
    """(L, K) float64, NaN where a layer has no value; a model that grows has shorter records first."""
    layers = max(len(record[quantity]) for record in records)
    values_LK = np.full((layers, len(records)), np.nan)
    for column, record in enumerate(records):
        vector = [np.nan if value is None else number(value) for value in record[quantity]]
        values_LK[: len(vector), column] = vector
    return values_LK


def _states(values_LK: np.ndarray, where_K: np.ndarray, quantity: str) -> go.Heatmap:
    codes_LK = np.where(np.isnan(values_LK), STATES.index("absent"), values_LK).astype(np.uint8)
    # Each colour at both ends of its stretch: given once, Plotly would blend it into the next.
    edges = np.arange(len(STATES) + 1) / len(STATES)
    steps = [[edge, colour] for i, colour in enumerate(STATE_COLOURS) for edge in (edges[i], edges[i + 1])]
    return go.Heatmap(
        z=codes_LK, x=where_K, y=np.arange(1, len(codes_LK) + 1), zmin=-0.5, zmax=len(STATES) - 0.5,
        colorscale=steps, text=np.array(STATE_WORDS)[codes_LK].tolist(), xgap=0, ygap=1,
        colorbar={"tickvals": list(range(len(STATES))), "ticktext": list(STATE_WORDS), "thickness": 14},
        hovertemplate="layer %{y} at %{x:.4s}: %{text}<extra></extra>",
    )  # fmt: skip


def _numbers(values_LK: np.ndarray, where_K: np.ndarray, quantity: str) -> go.Heatmap:
    shown_LK = values_LK
    bar: dict[str, Any] = {"title": {"text": QUANTITIES[quantity], "side": "right"}, "thickness": 14}
    if quantity in LOGARITHMIC:
        with np.errstate(divide="ignore", invalid="ignore"):
            # A frozen layer's zero has no logarithm; it stays empty instead of pulling the scale to minus infinity.
            shown_LK = np.where(values_LK > 0, np.log10(values_LK), np.nan)
        bar |= {"tickprefix": "10^", "tickformat": ".1f"}
    return go.Heatmap(
        z=shown_LK.astype("float32"), customdata=values_LK.astype("float32"), x=where_K,
        y=np.arange(1, len(values_LK) + 1), colorscale="Cividis", colorbar=bar, xgap=0, ygap=1,
        hovertemplate="layer %{y} at %{x:.4s}: %{customdata:.4g}<extra></extra>",
    )  # fmt: skip
