"""Templates (light, dark), event marks and axis titles of all Plotly pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from workbench.plots.activity import boundary_labels, stages
from workbench.plots.curves import X_LABELS, Curve, check_axis, curve, x_at_steps
from workbench.plots.palette import placed, plotly_dash, plotly_text
from workbench.telemetry.quantities import REFERENCE_COLOUR, RUN_COLOURS, run_colour, run_dash
from workbench.telemetry.streams import data_of

if TYPE_CHECKING:
    from workbench.store.view import RunView
    from workbench.telemetry.streams import Record

MARKED = ("stage", "phase", "knob", "pause", "resume", "stop", "fork", "memory", "warning", "error")
"""Event kinds worth a line on every picture; evaluations and checkpoints are too many, but for those asked for."""
_REQUESTS_SHOWN = ("checkpoint", "evaluate")
# Dotted lines closer than this are a grey wall.
MOST_MARKS = 60
MODEBAR_PX = 32
"""Pixels that Plotly's buttons take above a picture."""
EVENTS = "events"
"""Name of the marks that say on hover what happened."""
_EVENT_LINE = {"width": 1, "dash": "dot"}
_STAGE_LINE = {"width": 2, "dash": "dash"}
# Where along its line an event is told under the pointer, as shares of the height; at the lowest stands a sign.
_SIGN, *_ALONG = np.linspace(0.02, 0.98, 13).tolist()
# Of a legend under the axes: one entry, and the gap between two runs.
_ENTRY_PX, _GROUP_GAP_PX = 20, 10
_FONT = "system-ui, -apple-system, 'Segoe UI', sans-serif"


def template(dark: bool = False) -> go.layout.Template:
    """Return colours of text, grid and hover boxes; the paper is transparent, so that a page's own background shows."""
    text, grid, box = ("#e6e8eb", "#3a3f47", "#1f2329") if dark else ("#1b1f24", "#dfe3e8", "#ffffff")
    axis = {"gridcolor": grid, "linecolor": grid, "zeroline": False, "automargin": True, "title": {"standoff": 8}}
    return go.layout.Template(
        layout={
            "font": {"color": text, "family": _FONT, "size": 13},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "colorway": list(RUN_COLOURS),
            "xaxis": axis,
            "yaxis": axis,
            # Else half-transparent paper, which is grey where the paper is black that cannot be seen.
            "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": REFERENCE_COLOUR, "activecolor": text},
            "hoverlabel": {"bgcolor": box, "bordercolor": grid, "font": {"color": text}},
            # Under the axes, where Plotly makes room for it however many runs there are.
            "legend": {
                "orientation": "h",
                "yref": "container",
                "yanchor": "bottom",
                "y": 0,
                "x": 0,
                "bgcolor": "rgba(0,0,0,0)",
                "traceorder": "grouped",
            },
            # Below Plotly's buttons, which lie at the top right and cover a title in a narrow picture.
            "margin": {"l": 60, "r": 20, "t": 74, "b": 50},
            "title": {
                "x": 0,
                "xref": "paper",
                "y": 1,
                "yref": "container",
                "yanchor": "top",
                "pad": {"t": MODEBAR_PX},
                "font": {"size": 16},
            },
            "annotationdefaults": {"font": {"color": text}, "showarrow": False},
        }
    )


def require(views: Sequence[RunView], x: str = "step") -> None:
    """Check what every picture needs.

    Raises:
        ValueError: no runs, or an x axis that does not exist.
    """
    if not views:
        raise ValueError("no runs to draw: give at least one RunView")
    check_axis(x)


def finish(
    figure: go.Figure, views: Sequence[RunView], x: str, height: int = 420, panels: Sequence[str] = ("",)
) -> go.Figure:
    """Return template, height, event marks, and words when nothing was measured.

    Args:
        figure: changed in place and returned.
        views: the runs whose events are marked.
        x: ``step``, ``tokens``, ``seconds`` or ``flops``.
        height: in pixels, with the legend of one run; each further one that has several entries adds theirs.
        panels: axis numbers (``""``, ``"2"``, ...) of the subplots whose x axis is time.
    """
    # The legend's groups are runs: one click hides the raw, the smoothed and the held-out line together.
    figure.update_layout(
        template=template(),
        height=height + _further_legend_px(figure),
        hovermode="closest",
        legend_groupclick="togglegroup",
    )
    if not any(_has_points(trace) for trace in figure.data):
        say_nothing(figure, "nothing was measured" if all(view.final for view in views) else "nothing measured yet")
    several = len(views) > 1
    for index, view in placed(views):
        whose, colour = (f"{plotly_text(view.name)}: ", run_colour(index)) if several else ("", REFERENCE_COLOUR)
        mark_events(figure, view, x, panels, whose, colour)
    return figure


def _further_legend_px(figure: go.Figure) -> int:
    """Return what the legend takes from the plot for runs after the first; those with one entry stand side by side."""
    entries = Counter(trace.legendgroup for trace in figure.data if trace.legendgroup and trace.showlegend is not False)
    heights = [_ENTRY_PX * count + _GROUP_GAP_PX for count in entries.values() if count > 1]
    return sum(heights[1:])


def say_nothing(figure: go.Figure, why: str) -> None:
    """Words in the place of axes that would have numbers of nothing."""
    # Replaced, not merged: titles of empty panels would only be in the way.
    figure.layout.annotations = [{"text": why, "xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5}]
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)


def _is_shown_request(event: Record) -> bool:
    data = data_of(event)
    return event.get("kind") == "request" and data.get("done") is True and data.get("verb") in _REQUESTS_SHOWN


def mark_events(
    figure: go.Figure,
    view: RunView,
    x: str,
    panels: Sequence[str] = ("",),
    whose: str = "",
    colour: str = REFERENCE_COLOUR,
) -> None:
    """Draw a dotted line where a stage, knob change, pause or warning happened; its words on hover in the first panel.

    Args:
        figure: drawn on in place.
        view: the run; its stages and at most its latest :data:`MOST_MARKS` other events are drawn.
        x: ``step``, ``tokens``, ``seconds`` or ``flops``.
        panels: as in :func:`finish`.
        whose: put before the words, already safe for Plotly. colour: of the lines and signs.
    """
    marked = [event for event in view.telemetry.events if event.get("kind") in MARKED or _is_shown_request(event)]
    # Stages are few and explain the picture: however many knobs were turned since, none of them goes.
    recent = {id(event) for event in marked[-MOST_MARKS:]}
    events = [event for event in marked if id(event) in recent or event.get("kind") == "stage"]
    if not events:
        return
    where_K = x_at_steps(view, [event.get("step", 0) for event in events], x)
    # Over the panel's height, not the data's: the lines stay whole when somebody zooms.
    shapes = [
        {
            "type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "xref": f"x{panel}", "yref": f"y{panel} domain",
            "line": (_STAGE_LINE if event["kind"] == "stage" else _EVENT_LINE) | {"color": colour},
        }
        for panel in panels
        for at, event in zip(where_K.tolist(), events, strict=True)
    ]  # fmt: skip
    figure.update_layout(shapes=[*figure.layout.shapes, *shapes])
    # The text of a stage begins with that word.
    kinds = ["" if event["kind"] == "stage" else f"{event['kind']}: " for event in events]
    texts = [
        f"{whose}{kind}{plotly_text(event.get('text', ''), 160)}" for kind, event in zip(kinds, events, strict=True)
    ]
    # Hover needs points, shapes have none: on an axis of their own that spans the panel's height, one with a sign, and
    # unseen ones all along the line, where somebody points at it.
    shared = {"yaxis": "y99", "mode": "markers", "showlegend": False, "hovertemplate": "%{text}<extra></extra>"}
    figure.add_trace(
        go.Scatter(
            x=where_K, y=[_SIGN] * len(events), name=EVENTS, text=texts,
            marker={"symbol": "triangle-up", "size": 9, "color": colour}, **shared,
        )
    )  # fmt: skip
    figure.add_trace(
        go.Scatter(
            x=np.repeat(where_K, len(_ALONG)), y=_ALONG * len(events), name="events, along their lines",
            text=[text for text in texts for _ in _ALONG], marker={"size": 6, "opacity": 0, "color": colour}, **shared,
        )
    )  # fmt: skip
    figure.update_layout(yaxis99={"range": [0, 1], "visible": False, "overlaying": "y", "fixedrange": True})


def label_stages(figure: go.Figure, view: RunView, x: str, reach: tuple[float, float]) -> go.Figure:
    """Write "stage 2 of 4" above the boundaries of the first panel; changes ``figure`` and returns it.

    Args:
        x: ``step``, ``tokens``, ``seconds`` or ``flops``.
        reach: first and last x of the picture.
    """
    found = stages(view.telemetry.events)
    where = x_at_steps(view, [stage.step for stage in found], x).tolist()
    for text, at in zip(boundary_labels(found, where, reach), where, strict=True):
        if text:
            late = at > reach[0] + 0.88 * (reach[1] - reach[0])
            figure.add_annotation(
                text=plotly_text(text), x=at, xref="x", y=1, yref="y domain", yanchor="bottom", showarrow=False,
                xanchor="right" if late else "left", font={"size": 11},
            )  # fmt: skip
    return figure


def run_line(view: RunView, index: int, line: Curve, *, legend: bool, hover: str) -> go.Scatter:
    """Return one scalar of one run as a line in the run's colour and dash.

    Args:
        view: the run; its lines in all panels are one group of the legend.
        index: place of the run among those drawn, which decides its colour.
        legend: whether this line is the one that stands in the legend for the group.
    """
    return go.Scatter(
        # Half the bytes of the page, and still more digits than a screen shows.
        x=line.x_N, y=line.y_N.astype("float32"), mode="lines", name=plotly_text(view.name),
        legendgroup=view.id, showlegend=legend,
        line={"color": run_colour(index), "width": 2, "dash": plotly_dash(run_dash(index))},
        hovertemplate=f"%{{y:{hover}}} at %{{x:.4s}}<extra>%{{fullData.name}}</extra>",
    )  # fmt: skip


def x_title(x: str) -> str:
    """Return title of the x axis ``x``."""
    return X_LABELS[check_axis(x)]


def span(views: Sequence[RunView], x: str) -> tuple[float, float] | None:
    """From where to where the runs' telemetry reaches on the x axis; None before anything was measured."""
    # Every record has a loss, so its curve reaches as far as the run does.
    ends = [line.x_N[[0, -1]] for view in views if len(line := curve(view, "loss", x))]
    return (float(min(a for a, _ in ends)), float(max(b for _, b in ends))) if ends else None


def _has_points(trace: go.Figure) -> bool:
    # Bars of medians carry their numbers on x, heat maps on z, curves on y.
    return any(getattr(trace, axis, None) is not None and len(getattr(trace, axis)) > 0 for axis in ("z", "y"))
