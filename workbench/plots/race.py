"""Pictures of a race: held-out loss by arm with bands over seeds, and differences to the baseline with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from workbench.base.text import many
from workbench.plots.curves import ALL_SCORED, Curve
from workbench.plots.figure import say_nothing, template
from workbench.plots.layers_static import small_png
from workbench.plots.levels import Level, loss_range, robust_range
from workbench.plots.palette import matplotlib_text, plotly_dash, plotly_text
from workbench.telemetry.quantities import LEVEL_DASHES, REFERENCE_COLOUR, run_colour, run_dash

# Shape legend: S seeds, P points of a curve.

_BAND_OPACITY = 0.18
_TARGET = "baseline's final score"
_NO_SCORE, _NO_PAIR = "no run has been scored yet", "no seed has ended in both arms yet"
_DIVERGED = 2.0
"""Times the highest loss of the arm that stays lowest, or a higher floor: beyond lie losses of one that diverges."""
OUTSIDE = "outside the picture"
_SIZE_INCHES, _DOTS_PER_INCH = (10.0, 4.2), 100


@dataclass(frozen=True)
class Arm:
    """Held-out losses of one arm; the baseline comes first.

    Attributes:
        lines: one per seed, on a part of the held-out tokens.
        ends: of seeds that have ended, the one point on all of these tokens, which no line joins to those of a part.
    """

    name: str
    lines: Sequence[Curve]
    ends: Sequence[Curve] = ()


@dataclass(frozen=True)
class Gap:
    """An arm against the baseline.

    Attributes:
        points: paired differences by seed, below 0 where the arm is better. seeds: which, in the same order.
        mean, low, high: with the repeated confidence interval; None before the first look.
        text: the verdict in a word.
        runs: of the points, what a page calls the run of each.
    """

    name: str
    points: Sequence[float]
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    text: str = ""
    seeds: Sequence[int] = ()
    runs: Sequence[str] = ()


@dataclass(frozen=True)
class Reach:
    """Reference seconds, with an interval, until an arm reaches the score that the baseline ends with."""

    name: str
    seconds: float
    low: float
    high: float


@dataclass(frozen=True)
class RacePicture:
    """The data of the pictures of a race.

    Attributes:
        unit: of losses and differences. x_label: of the curves' axis.
        margin: differences within it are called equivalent.
        levels: losses of predictors without a model, by name.
        target: what the baseline ends with, a mean over seeds; None where none is judged, or losses do not compare.
        reaches: when other arms get there; without those that do not on every seed.
    """

    unit: str
    x_label: str
    arms: Sequence[Arm]
    gaps: Sequence[Gap]
    margin: float
    levels: Mapping[str, float] = field(default_factory=dict)
    target: float | None = None
    reaches: Sequence[Reach] = ()

    def place(self, name: str) -> int:
        """Return the place of an arm, which decides its colour."""
        return next(place for place, arm in enumerate(self.arms) if arm.name == name)


def band(lines: Sequence[Curve]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return x, mean, lowest and highest of several curves (P,), where all of them have got; empty without any.

    Points are those of the longest curve: seeds of one arm are scored at the same places, up to rounding.
    """
    known = [line for line in lines if len(line)]
    if not known:
        return (np.empty(0),) * 4
    reach = min(line.x_N[-1] for line in known)
    longest = max(known, key=len)
    x_P = longest.x_N[longest.x_N <= reach * (1 + 1e-9)]
    y_SP = np.stack([np.interp(x_P, line.x_N, line.y_N) for line in known])
    return x_P, y_SP.mean(axis=0), y_SP.min(axis=0), y_SP.max(axis=0)


def ends_band(arm: Arm) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return :func:`band` of the ends of an arm: one point (1,), or none."""
    if not arm.ends:
        return (np.empty(0),) * 4
    x_S, y_S = (np.concatenate([getattr(end, of) for end in arm.ends]) for of in ("x_N", "y_N"))
    x, mean, low, high = (np.array([value]) for value in (x_S.mean(), y_S.mean(), y_S.min(), y_S.max()))
    return x, mean, low, high


def race_range(picture: RacePicture) -> tuple[float, float] | None:
    """Return the lowest and highest loss that the curves show, as :func:`loss_range`, and without arms that diverge.

    Returns:
        None where there is nothing to draw.
    """
    losses = [[line.y_N for line in (*arm.lines, *arm.ends)] for arm in picture.arms]
    found = [[reach[1] for each in arm if (reach := robust_range(each)) is not None] for arm in losses]
    calmest = min((max(highest) for highest in found if highest), default=math.inf)
    most = _DIVERGED * max(calmest, *picture.levels.values(), 0.0)
    levels = [Level(text, nats) for text, nats in picture.levels.items()]
    levels += [] if picture.target is None else [Level("target", picture.target)]
    return loss_range([each[each <= most] for arm in losses for each in arm], levels)


def gaps_range(picture: RacePicture) -> tuple[float, float] | None:
    """Return the lowest and highest difference that has room in the curves; None: all of them."""
    found = [point for gap in picture.gaps for point in (*gap.points, gap.low, gap.high) if point is not None]
    room = race_range(picture)
    if room is None or not found or max(map(abs, found)) <= (widest := room[1] - room[0]):
        return None
    near = [point for point in found if abs(point) <= widest]
    low, high = min([*near, -picture.margin]), max([*near, picture.margin])
    # Up to where the arm lies that has no room, so that its mark stands apart.
    air = 0.1 * (high - low)
    return low - air, high + air


class Beyond(NamedTuple):
    """A point that has no room in a picture: where its mark stands, which way it lies, and what it is.

    Attributes:
        at: along the other axis. edge: of the picture. above: it lies above, or to the right. value: in the unit.
    """

    at: Any
    edge: float
    above: bool
    value: float


def beyond(at_N: Iterable[Any], values_N: Iterable[float], shown: tuple[float, float] | None) -> list[Beyond]:
    """Return the points, (N,), outside the picture; NaN lies above."""
    if shown is None:
        return []
    low, high = shown
    return [
        Beyond(at, low if value < low else high, not value < low, float(value))
        for at, value in zip(at_N, values_N, strict=True)
        if not low <= value <= high
    ]


def race_curves(picture: RacePicture) -> go.Figure:
    """Return mean held-out loss of each arm, and the band from its best to its worst seed; filled:
    on all held-out tokens.

    Triangles at the edge: points outside the picture.
    """
    figure, shown = go.Figure(), race_range(picture)
    for index, arm in enumerate(picture.arms):
        x_P, mean_P, low_P, high_P = band(arm.lines)
        name, colour = plotly_text(arm.name), run_colour(index)
        figure.add_scatter(
            x=np.concatenate([x_P, x_P[::-1]]), y=np.concatenate([high_P, low_P[::-1]]), fill="toself", mode="none",
            fillcolor=_faint(colour), legendgroup=name, showlegend=False, hoverinfo="skip",
        )  # fmt: skip
        figure.add_scatter(
            x=x_P, y=mean_P, mode="lines+markers", name=f"{name} ({_seeds(arm)})", legendgroup=name,
            line={"color": colour, "dash": plotly_dash(run_dash(index))},
            marker={"size": 6, "color": "rgba(0,0,0,0)", "line": {"color": colour, "width": 1.5}},
            hovertemplate="~%{y:.3f} at %{x:.4~g} s<extra>%{fullData.name}</extra>",
        )  # fmt: skip
        if arm.ends:
            first = not any(before.ends for before in picture.arms[:index])
            figure.add_trace(_ends(arm, colour, shown=first))
        for points in (band(arm.lines), ends_band(arm)):
            _mark(figure, beyond(*points[:2], shown), name, colour)
    for text, level in _levels(picture, shown).items():
        figure.add_hline(level, line={"color": REFERENCE_COLOUR, "dash": plotly_dash(LEVEL_DASHES.get(text, ()))},
                         annotation_text=plotly_text(text), annotation_position="top right")  # fmt: skip
    if picture.target is not None:
        figure.add_hline(picture.target, line={"color": run_colour(0), "width": 1}, annotation_text=_TARGET,
                         annotation_position="bottom right")  # fmt: skip
        for reach in picture.reaches:
            figure.add_scatter(
                x=[reach.seconds], y=[picture.target], mode="markers", showlegend=False, name=plotly_text(reach.name),
                marker={"color": run_colour(picture.place(reach.name)), "size": 11, "symbol": "diamond"},
                error_x={"type": "data", "symmetric": False, "array": [reach.high - reach.seconds],
                         "arrayminus": [reach.seconds - reach.low], "thickness": 2,
                         "color": run_colour(picture.place(reach.name))},
                hovertemplate=f"at the baseline's final score after %{{x:.3s}} s ({reach.low:.3g} to "
                f"{reach.high:.3g})<extra>%{{fullData.name}}</extra>",
            )  # fmt: skip
    figure.update_layout(template=template(), title="Held-out loss by arm, best to worst seed", height=420)
    figure.update_xaxes(title=picture.x_label)
    # The title says of what; both would be taller than the plot of a small window.
    figure.update_yaxes(title=picture.unit, range=shown)
    if not any(arm.lines for arm in picture.arms):
        figure.layout.shapes = ()
        say_nothing(figure, _NO_SCORE)
    return figure


def _ends(arm: Arm, colour: str, *, shown: bool) -> go.Scatter:
    x_1, mean_1, low_1, high_1 = ends_band(arm)
    name = plotly_text(arm.name)
    return go.Scatter(
        x=x_1, y=mean_1, mode="markers", name=ALL_SCORED, meta=f"{name} ({many(len(arm.ends), 'seed')})",
        legendgroup=name, showlegend=shown, marker={"color": colour, "size": 9},
        error_y={"type": "data", "symmetric": False, "array": high_1 - mean_1, "arrayminus": mean_1 - low_1,
                 "color": colour},
        hovertemplate="%{y:.3f} on all held-out tokens at %{x:.4~g} s<extra>%{meta}</extra>",
    )  # fmt: skip


def _levels(picture: RacePicture, shown: tuple[float, float] | None) -> dict[str, float]:
    """Return the levels that have room: one far away would press all curves into a line."""
    return {text: at for text, at in picture.levels.items() if shown is not None and shown[0] <= at <= shown[1]}


def _mark(figure: go.Figure, points: Sequence[Beyond], name: str, colour: str, *, across: bool = False) -> None:
    """Triangles where points lie outside the picture, whose values are said on hover.

    Args:
        across: along the horizontal axis.
    """
    if not points:
        return
    along, edges = [each.at for each in points], [each.edge for each in points]
    ways = ("triangle-right", "triangle-left") if across else ("triangle-up", "triangle-down")
    figure.add_scatter(
        x=edges if across else along, y=along if across else edges, mode="markers", name=name, showlegend=False,
        text=[f"{each.value:.4g}" for each in points], cliponaxis=False,
        marker={"color": colour, "size": 10, "symbol": [ways[not each.above] for each in points]},
        hovertemplate=f"%{{text}}, {OUTSIDE}<extra>%{{fullData.name}}</extra>",
    )  # fmt: skip


def race_differences(picture: RacePicture) -> go.Figure:
    """Return paired differences of each arm to the baseline with their interval; the grey stripe is called equivalent.

    Triangles at the edge: points outside the picture.
    """
    figure, shown = go.Figure(), gaps_range(picture)
    figure.add_vrect(-picture.margin, picture.margin, fillcolor=REFERENCE_COLOUR, opacity=0.2, line_width=0)
    figure.add_vline(0.0, line={"color": REFERENCE_COLOUR, "dash": "dot"})
    for index, gap in enumerate(picture.gaps, start=1):
        name, colour = plotly_text(gap.name), run_colour(index)
        figure.add_scatter(x=list(gap.points), y=[name] * len(gap.points), mode="markers", showlegend=False,
                           marker={"color": colour, "opacity": 0.7, "size": 8}, name=name,
                           text=[f"{seed}" for seed in gap.seeds], customdata=list(gap.runs),
                           hovertemplate="%{x:+.3f} at seed %{text}<extra>%{fullData.name}</extra>")  # fmt: skip
        if gap.mean is not None and gap.low is not None and gap.high is not None:
            figure.add_scatter(
                x=[gap.mean], y=[name], mode="markers+text", showlegend=False, name=name, text=[plotly_text(gap.text)],
                textposition="top center", marker={"color": colour, "size": 12, "symbol": "diamond"},
                error_x={"type": "data", "symmetric": False, "array": [gap.high - gap.mean],
                         "arrayminus": [gap.mean - gap.low], "color": colour, "thickness": 2},
                hovertemplate=f"{gap.low:+.3f} to {gap.high:+.3f}<extra>%{{fullData.name}}</extra>",
            )  # fmt: skip
        _mark(figure, beyond([name] * len(gap.points), gap.points, shown), name, colour, across=True)
    interval = ", with its interval" if any(gap.mean is not None for gap in picture.gaps) else ""
    figure.update_layout(template=template(), title=f"Difference to the baseline{interval}",
                         height=160 + 70 * len(picture.gaps))  # fmt: skip
    figure.update_xaxes(title=f"{picture.unit}; left of 0 is better, grey is called equivalent", range=shown)
    # In the order of the arms, with room for the word above the first.
    figure.update_yaxes(range=[len(picture.gaps) - 0.5, -0.7])
    if not any(gap.points for gap in picture.gaps):
        figure.layout.shapes = ()
        say_nothing(figure, _NO_PAIR)
    return figure


def race_png(picture: RacePicture) -> bytes:
    """Return both pictures side by side, drawn without a browser.

    Returns:
        PNG, 1000 x 420 pixels, 128 colours.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=_SIZE_INCHES, dpi=_DOTS_PER_INCH, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    curves, gaps = figure.subplots(1, 2, width_ratios=[3, 2])
    shown, apart = race_range(picture), gaps_range(picture)
    for index, arm in enumerate(picture.arms):
        x_P, mean_P, low_P, high_P = band(arm.lines)
        dash = (0, run_dash(index)) if run_dash(index) else "-"
        label = f"{matplotlib_text(arm.name)} ({_seeds(arm)})"
        curves.fill_between(x_P, low_P, high_P, color=run_colour(index), alpha=_BAND_OPACITY, linewidth=0)
        curves.plot(x_P, mean_P, color=run_colour(index), linestyle=dash, marker="o", markersize=4,
                    markerfacecolor="white", label=label)  # fmt: skip
        if arm.ends:
            x_1, mean_1, low_1, high_1 = ends_band(arm)
            curves.errorbar(x_1, mean_1, yerr=[mean_1 - low_1, high_1 - mean_1], fmt="o", color=run_colour(index))
        far = [*beyond(x_P, mean_P, shown), *beyond(*ends_band(arm)[:2], shown)]
        for place, each in enumerate(far):
            curves.plot(each.at, each.edge, "^" if each.above else "v", color=run_colour(index), clip_on=False,
                        label=None if place else f"{matplotlib_text(arm.name)}, {OUTSIDE}")  # fmt: skip
    for text, level in _levels(picture, shown).items():
        curves.axhline(level, color=REFERENCE_COLOUR, linestyle=(0, LEVEL_DASHES.get(text, (2, 4))), label=text)
    if picture.target is not None:
        curves.axhline(picture.target, color=run_colour(0), linewidth=0.8, label=_TARGET)
        for reach in picture.reaches:
            curves.errorbar(reach.seconds, picture.target, xerr=[[reach.seconds - reach.low],
                            [reach.high - reach.seconds]], fmt="D", capsize=4,
                            color=run_colour(picture.place(reach.name)))  # fmt: skip
    if any(arm.ends for arm in picture.arms):
        curves.plot([], [], "o", color=REFERENCE_COLOUR, label=ALL_SCORED)
    curves.set_xlabel(picture.x_label, fontsize=9)
    curves.set_ylabel(f"held-out loss ({picture.unit})", fontsize=9)
    curves.legend(fontsize=8, frameon=False)
    gaps.axvspan(-picture.margin, picture.margin, color=REFERENCE_COLOUR, alpha=0.2, linewidth=0)
    gaps.axvline(0, color=REFERENCE_COLOUR, linewidth=1)
    for place, gap in enumerate(picture.gaps):
        colour = run_colour(place + 1)
        gaps.plot(list(gap.points), [place] * len(gap.points), "o", color=colour, alpha=0.4, markersize=5)
        for each in beyond([place] * len(gap.points), gap.points, apart):
            gaps.plot(each.edge, each.at, ">" if each.above else "<", color=colour, clip_on=False)
        if gap.mean is not None and gap.low is not None and gap.high is not None:
            gaps.errorbar(gap.mean, place, xerr=[[gap.mean - gap.low], [gap.high - gap.mean]], fmt="D", color=colour,
                          capsize=4)  # fmt: skip
            gaps.annotate(gap.text, (gap.mean, place), (0, 9), textcoords="offset points", ha="center", fontsize=9)
    gaps.set_yticks(range(len(picture.gaps)), [matplotlib_text(gap.name) for gap in picture.gaps], fontsize=9)
    # Of few digits each: more would run into one another.
    gaps.xaxis.set_major_locator(MaxNLocator(5))
    gaps.set_ylim(len(picture.gaps) - 0.5, -0.5)
    gaps.set_xlim(apart)
    curves.set_ylim(shown)
    gaps.set_xlabel(f"difference ({picture.unit}); left of 0 is better", fontsize=9)
    for axes, why in ((curves, "" if any(arm.lines for arm in picture.arms) else _NO_SCORE),
                      (gaps, "" if any(gap.points for gap in picture.gaps) else _NO_PAIR)):  # fmt: skip
        if why:
            axes.clear()
            axes.set_axis_off()
            axes.text(0.5, 0.5, why, ha="center", va="center", fontsize=9, transform=axes.transAxes)
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    canvas.draw()
    return small_png(np.asarray(canvas.buffer_rgba()))


def _seeds(arm: Arm) -> str:
    return many(len(arm.lines), "seed")


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{_BAND_OPACITY})"
