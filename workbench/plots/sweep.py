"""Pictures of a sweep: all knobs at once, the score against each of them, their importance, and Pareto fronts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from workbench.base.fields import as_typed
from workbench.base.text import plain
from workbench.plots.figure import say_nothing, template
from workbench.plots.layers_static import small_png
from workbench.plots.palette import matplotlib_text, plotly_text
from workbench.plots.pareto import ALIKE, around, front_of
from workbench.plots.sweep_axes import APART, number_ticks
from workbench.telemetry.quantities import REFERENCE_COLOUR, SECONDS_TRAINED, run_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COSTS = ("seconds", "memory_bytes", "parameters")
_SIZE_INCHES, _DOTS_PER_INCH = (10.0, 4.2), 100
_MOST_PANELS = 4
# Panels are narrow.
_APART_STATIC = 0.25


@dataclass(frozen=True)
class Dot:
    """A point of a sweep.

    Attributes:
        values: of its knobs, by path. score: mean over seeds; NaN where there is none. scores: by seed.
        seconds, memory_bytes, parameters: what it costs; NaN where that is not known.
    """

    index: int
    label: str
    values: Mapping[str, Any]
    score: float
    scores: Sequence[float] = ()
    seconds: float = math.nan
    memory_bytes: float = math.nan
    parameters: float = math.nan

    def cost(self, name: str) -> float:
        """Return one of :data:`COSTS`, memory in MiB, as forecasts say it of such models."""
        value = float(getattr(self, name))
        return value / 2**20 if name == "memory_bytes" else value


@dataclass(frozen=True)
class SweepPicture:
    """The data of the pictures of a sweep.

    Attributes:
        unit: of scores. dots: points with a score. knobs: paths, as asked. log: those on a logarithmic axis.
        importance: by path, from the largest. importance_method: what that is, in words.
        importance_caveat: what it leaves out, in lines.
        seconds: whose seconds those of the dots are.
    """

    unit: str
    dots: Sequence[Dot]
    knobs: Sequence[str]
    log: Sequence[str] = ()
    importance: Mapping[str, float] = field(default_factory=dict)
    importance_method: str = ""
    importance_caveat: str = ""
    seconds: str = SECONDS_TRAINED

    @property
    def costs(self) -> dict[str, str]:
        """Titles of :data:`COSTS`, in the units of :meth:`Dot.cost`."""
        return {"seconds": self.seconds, "memory_bytes": "memory (MiB, forecast)", "parameters": "parameters"}

    def differs(self, cost: str) -> bool:
        """Return True where the points differ in a cost by more than :data:`~workbench.plots.pareto.ALIKE`."""
        known = [value for dot in self.dots if math.isfinite(value := dot.cost(cost))]
        return bool(known) and max(known) > ALIKE * min(known)

    @property
    def ranked_knobs(self) -> list[str]:
        """The knobs, the most important first."""
        return [*self.importance, *(path for path in self.knobs if path not in self.importance)]


def scale_of(picture: SweepPicture, path: str, apart: float = APART) -> tuple[list[float], list[tuple[float, str]]]:
    """Return the places of the dots on a knob's axis, and its ticks.

    Numbers lie as they are (at their decimal logarithm on such an axis), all else in order of appearance; a knob that a
    point does not have lies at NaN.

    Args:
        apart: share of the axis that two ticks keep between them.
    """
    values = [dot.values.get(path) for dot in picture.dots]
    known = [value for value in values if value is not None]
    if known and all(map(_is_number, known)):
        log = _is_log(picture, path)
        take = math.log10 if log else float
        return [math.nan if value is None else take(value) for value in values], number_ticks(known, log, apart)
    names = list(dict.fromkeys(map(as_typed, known)))
    places = [math.nan if value is None else float(names.index(as_typed(value))) for value in values]
    return places, [(float(at), name) for at, name in enumerate(names)]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_log(picture: SweepPicture, path: str) -> bool:
    """Return True where the dots lie at logarithms on a knob's axis."""
    known = [value for dot in picture.dots if (value := dot.values.get(path)) is not None]
    return path in picture.log and all(_is_number(value) and value > 0 for value in known)


def _axis_name(picture: SweepPicture, path: str) -> str:
    return plain(path) + " (log)" * _is_log(picture, path)


def parallel_figure(picture: SweepPicture) -> go.Figure:
    """Return parallel coordinates: a line per point through its knobs to its score;
    drag along an axis to pick points.
    """
    dots = [at for at, dot in enumerate(picture.dots) if math.isfinite(dot.score)]
    figure, dimensions = go.Figure(), []
    for path in picture.knobs:
        places, ticks = scale_of(picture, path)
        known = [at for at, _ in ticks]
        # A knob that a point does not have: below all values, or the line would be lost.
        low = (min(known) - 0.15 * (max(known) - min(known) or 1)) if known else 0.0
        missing = any(math.isnan(places[at]) for at in dots)
        shown = [(low, "none"), *ticks] if missing else ticks
        values = [low if math.isnan(places[at]) else places[at] for at in dots]
        dimensions.append({
            "label": plotly_text(_axis_name(picture, path)), "values": values, "range": around(values),
            "tickvals": [at for at, _ in shown], "ticktext": [plotly_text(text) for _, text in shown],
        })  # fmt: skip
    scores = [picture.dots[at].score for at in dots]
    # Seen on light and on dark paper alike.
    scale = [[0, run_colour(0)], [1, REFERENCE_COLOUR]]
    dimensions.append({"label": f"score ({picture.unit})", "values": scores, "range": around(scores),
                       "tickformat": ".3f"})  # fmt: skip
    figure.add_parcoords(
        dimensions=dimensions,
        customdata=[f"{picture.dots[at].index}" for at in dots],
        line={"color": scores, "colorscale": scale, "showscale": True},
    )
    _finish(figure, "All knobs at once: blue lines are better", bool(dots))
    # The names of the axes stand above them, and are wider than an axis.
    return figure.update_layout(margin={"t": 100, "l": 90, "r": 90})


def knob_figure(picture: SweepPicture, path: str) -> go.Figure:
    """Score against one knob: a point per seed, and a larger one for the mean of each point."""
    figure, (places, ticks) = go.Figure(), scale_of(picture, path)
    pairs = [(at, score) for at, dot in enumerate(picture.dots) for score in dot.scores if not math.isnan(places[at])]
    figure.add_scatter(x=[places[at] for at, _ in pairs], y=[score for _, score in pairs], mode="markers", name="seeds",
                       marker={"color": REFERENCE_COLOUR, "size": 6, "opacity": 0.6}, hoverinfo="skip")  # fmt: skip
    dots = [at for at in range(len(picture.dots)) if not math.isnan(places[at])]
    _add_dots(figure, picture, [places[at] for at in dots], dots, "mean of its seeds", run_colour(0))
    figure.update_xaxes(
        title=plotly_text(_axis_name(picture, path)),
        range=around(places),
        tickvals=[at for at, _ in ticks],
        ticktext=[plotly_text(text) for _, text in ticks],
    )
    figure.update_yaxes(title=f"score ({picture.unit})")
    return _finish(figure, f"Score against {plotly_text(path)}", bool(dots))


def importance_figure(picture: SweepPicture) -> go.Figure:
    """Draw the importance of each knob as bars."""
    items = list(picture.importance.items())[::-1]
    figure = go.Figure()
    figure.add_bar(x=[share for _, share in items], y=[plotly_text(path) for path, _ in items], orientation="h",
                   marker={"color": run_colour(0)}, hovertemplate="%{x:.0%}<extra>%{y}</extra>")  # fmt: skip
    figure.update_xaxes(title=picture.importance_method, range=[0, 1], tickformat=".0%")
    lines = picture.importance_caveat.splitlines()
    title = "<br>".join(["Importance of knobs", *(f"<sup>{plotly_text(line, 160)}</sup>" for line in lines)])
    _finish(figure, title, bool(items), 160 + 40 * len(items) + 20 * len(lines))
    return figure.update_layout(margin={"t": 74 + 20 * len(lines)})


def pareto_figure(picture: SweepPicture, cost: str) -> go.Figure:
    """Score against what a point costs; the line joins the points that no other beats.

    Args:
        cost: one of :data:`COSTS`.
    """
    x, y = [dot.cost(cost) for dot in picture.dots], [dot.score for dot in picture.dots]
    figure, kept = go.Figure(), front_of(cost, x, y)
    beaten = [at for at in range(len(x)) if at not in kept and math.isfinite(x[at])]
    beside = " at %{x:.4~g} s" if cost == "seconds" else " at %{x:.4~s}"
    for dots, name, colour, mode in ((beaten, "beaten", REFERENCE_COLOUR, "markers"),
                                     (kept, "on the front", run_colour(0), "lines+markers")):  # fmt: skip
        _add_dots(figure, picture, [x[at] for at in dots], dots, name, colour, mode, beside)
    figure.update_traces(line_shape="hv", selector={"name": "on the front"})
    figure.update_xaxes(title=picture.costs[cost])
    if alone := around(x):
        # Plotly would take a few digits around it, and label all of them alike.
        figure.update_xaxes(range=alone, tickvals=[sum(alone) / 2])
    figure.update_yaxes(title=f"score ({picture.unit})")
    return _finish(figure, f"Score against {picture.costs[cost]}; lower is better", bool(kept))


def sweep_png(picture: SweepPicture) -> bytes:
    """Draw the score against time, where points differ in it, and against the most important knobs.

    Args:
        picture: of at least one point with a score.

    Returns:
        PNG, 1000 x 420 pixels, 64 colours.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    timed = picture.differs("seconds")
    knobs = picture.ranked_knobs[: _MOST_PANELS - timed]
    figure = Figure(figsize=_SIZE_INCHES, dpi=_DOTS_PER_INCH, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    every = figure.subplots(1, timed + len(knobs), sharey=True, squeeze=False)[0]
    y = [dot.score for dot in picture.dots]
    best = min((at for at in range(len(y)) if math.isfinite(y[at])), key=y.__getitem__)
    kept = [best]
    if timed:
        x = [dot.seconds for dot in picture.dots]
        kept = front_of("seconds", x, y)
        every[0].plot(x, y, "o", color=REFERENCE_COLOUR, alpha=0.6, label="beaten")
        every[0].step([x[at] for at in kept], [y[at] for at in kept], "o-", where="post", color=run_colour(0),
                      label="front")  # fmt: skip
        for at in kept:
            every[0].annotate(str(picture.dots[at].index), (x[at], y[at]), (4, 4), textcoords="offset points",
                              fontsize=8)  # fmt: skip
        every[0].set_xlabel(picture.seconds, fontsize=9)
        every[0].legend(fontsize=8, frameon=False)
    every[0].set_ylabel(f"score ({picture.unit}); lower is better", fontsize=9)
    panels = every[timed:]
    for axes, path in zip(panels, knobs, strict=True):
        places, ticks = scale_of(picture, path, _APART_STATIC)
        seeds = [(places[at], score) for at, dot in enumerate(picture.dots) for score in dot.scores]
        axes.plot([place for place, _ in seeds], [score for _, score in seeds], ".", color=REFERENCE_COLOUR, alpha=0.6)
        draw_means(axes, places, y, kept)
        axes.set_xticks([at for at, _ in ticks], [matplotlib_text(text)[:14] for _, text in ticks], fontsize=8)
        share = f" ({picture.importance[path]:.0%})" if path in picture.importance else ""
        axes.set_xlabel(f"{matplotlib_text(_axis_name(picture, path))}{share}", fontsize=9)
        axes.margins(x=0.15)
    if picture.importance:
        first, *lines = picture.importance_caveat.splitlines() or [""]
        about = [f"Percentages: {picture.importance_method}. {first}", *lines]
        figure.supxlabel("\n".join(matplotlib_text(line, 200) for line in about), fontsize=8)
    for axes in every:
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    canvas.draw()
    return small_png(np.asarray(canvas.buffer_rgba()))


def draw_means(axes: Axes, x: Sequence[float], y: Sequence[float], kept: Sequence[int]) -> None:
    """Draw points against a knob, those on the front in their own colour."""
    beaten = [at for at in range(len(x)) if at not in kept]
    for dots, colour in ((beaten, REFERENCE_COLOUR), (kept, run_colour(0))):
        axes.plot([x[at] for at in dots], [y[at] for at in dots], "o", color=colour)


def _add_dots(
    figure: go.Figure, picture: SweepPicture, x: Sequence[float], dots: Sequence[int], name: str, colour: str,
    mode: str = "markers", beside: str = "",
) -> None:  # fmt: skip
    """Dots that tell their point; ``beside``: what is said after their score."""
    shown = [picture.dots[at] for at in dots]
    figure.add_scatter(
        x=list(x), y=[dot.score for dot in shown], mode=mode, name=name, marker={"color": colour, "size": 10},
        line={"color": colour}, customdata=[f"{dot.index}" for dot in shown],
        text=[f"point {dot.index}: {plotly_text(dot.label, 160)}" for dot in shown],
        hovertemplate=f"%{{text}}<br>%{{y:.3f}}{beside}<extra>%{{fullData.name}}</extra>",
    )  # fmt: skip


def _finish(figure: go.Figure, title: str, drawn: bool, height: int = 420) -> go.Figure:
    figure.update_layout(template=template(), title=title, height=height)
    if not drawn:
        say_nothing(figure, "no point has ended yet")
    return figure
