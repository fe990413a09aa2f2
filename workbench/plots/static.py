"""Static pictures of runs, drawn without a browser: PNG, HTML without scripts, and text.

They stand where nothing can move: papermill output, a saved notebook on GitHub, nbconvert, a terminal. Figures are
made without pyplot, so nothing is global and threads may draw at the same time.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.base.text import aligned, plain, plain_lines
from workbench.plots.activity import opening_quantity, stages
from workbench.plots.curves import (
    ALL_SCORED,
    X_LABELS,
    curve,
    downsample,
    heldout_curve,
    heldout_scores,
    smooth,
    speed_curve,
    x_at_steps,
)
from workbench.plots.facts import facts, facts_side_by_side
from workbench.plots.layers_static import ENTRIES, Activity, draw_update_ratio, mark_stages, small_png
from workbench.plots.levels import level_text, levels_of, loss_range
from workbench.plots.palette import matplotlib_text, placed
from workbench.store.measured import failure, heldout_loss
from workbench.telemetry.baselines import learned_briefly
from workbench.telemetry.quantities import LEVEL_DASHES, REFERENCE_COLOUR, run_colour, run_dash, scalar

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from workbench.store.view import RunView

SIZE_INCHES = (10.0, 6.0)
DOTS_PER_INCH = 100
LEGEND_INCHES = 0.46
"""Room between an axis and the legend below it: ticks and title."""
LABEL = 0.13
"""Share of a panel's width that the name of a stage takes."""
# Inline, because GitHub and nbconvert keep no style sheets of ours.
_CELL = "padding:2px 12px 2px 0;text-align:left;border:0"


def summary_png(views: Sequence[RunView]) -> bytes:
    """Return one picture: loss with held-out points and baselines, tokens/s, layer activity, learning rate.

    Args:
        views: the runs, in the order of their colours; the layer panel shows the first that has said anything.

    Returns:
        PNG, 1000 x 600 pixels, 128 colours, well under 80 kB.

    Raises:
        ValueError: no runs.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    _require(views)
    figure = Figure(figsize=SIZE_INCHES, dpi=DOTS_PER_INCH, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    ((loss, speed), (layers, rate)) = figure.subplots(2, 2, width_ratios=[3, 2])
    _draw_loss(loss, views)
    _draw_lines(speed, views, "tokens_per_second")
    _draw_layers(layers, views)
    _draw_lines(rate, views, "lr")
    # From zero: a speed that wavers by a percent must not look like a cliff.
    speed.set_ylim(bottom=0)
    for axes in (loss, speed, rate):
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    canvas.draw()
    return small_png(np.asarray(canvas.buffer_rgba()))


def summary_html(views: Sequence[RunView]) -> str:
    """Return the facts as a table and the picture as a data URI: no script, every name escaped.

    Reads on GitHub, in nbconvert and in JupyterLab without a kernel; colours are inherited from the page. Runs that
    ended before their first step have no picture.
    """
    return _summary_html(views, summary_png(views) if any(map(has_curves, views)) else b"")


def _summary_html(views: Sequence[RunView], picture: bytes) -> str:
    if not picture:
        return f'<div class="workbench-summary">{facts_html(views)}</div>'
    described = html.escape("; ".join(f"{plain(view.name)}: {facts(view)['what was learned']}" for view in views))
    image = image_html(picture, f"Loss, tokens per second, layer activity and learning rate. {described}")
    return f'<div class="workbench-summary">{facts_html(views)}{image}</div>'


def image_html(png: bytes, described: str) -> str:
    """Return a picture in the HTML itself: a file beside a notebook is lost when it is mailed or converted.

    Args:
        described: HTML for those who cannot see it.
    """
    image = base64.b64encode(png).decode()
    # By its class a page hides it where it draws the same live.
    look = 'class="wb-static-picture" style="max-width:100%;background:#fff"'
    return f'<img alt="{described}" {look} src="data:image/png;base64,{image}">'


def experiment_html(summary: str, table: str, png: bytes) -> str:
    """Return sentences (plain text), a table (HTML) and a picture, if there is one, without scripts."""
    lines = "<br>".join(map(html.escape, summary.splitlines()))
    return f"<div>{lines}</div>{table}{image_html(png, html.escape(summary)) if png else ''}"


def summary_bundle(views: Sequence[RunView]) -> dict[str, Any]:
    """Return :func:`summary_html`, the picture alone and :func:`summary_text`, by MIME type."""
    picture = summary_png(views) if any(map(has_curves, views)) else b""
    image = {"image/png": picture} if picture else {}
    return {"text/html": _summary_html(views, picture), **image, "text/plain": summary_text(views)}


def has_curves(view: RunView) -> bool:
    """Return whether the run has a loss to draw."""
    return len(curve(view, "loss", "seconds")) > 0 or len(heldout_curve(view, "seconds")) > 0


def facts_html(views: Sequence[RunView]) -> str:
    """Return the table of :func:`summary_html` alone, errors of failed runs above it."""
    _require(views)
    names = "".join(f'<th scope="col" style="{_CELL}">{html.escape(plain(view.name))}</th>' for view in views)
    rows = "".join(
        f'<tr><th scope="row" style="{_CELL};font-weight:normal">{html.escape(label)}</th>'
        + "".join(f'<td style="{_CELL}">{html.escape(value)}</td>' for value in values)
        + "</tr>"
        for label, values in facts_side_by_side(views).items()
    )
    errors = "".join(
        f'<p role="alert"><strong>{html.escape(plain(view.name))} {html.escape(view.status)}:</strong> '
        f'<span style="white-space:pre-wrap">{html.escape(plain_lines(failure(view)))}</span></p>'
        for view in views
        if failure(view)
    )
    return (
        f'{errors}<table style="border-collapse:collapse;margin:0 0 8px">'
        f'<thead><tr><td style="{_CELL}"></td>{names}</tr></thead><tbody>{rows}</tbody></table>'
    )


def summary_text(views: Sequence[RunView]) -> str:
    """Return the facts as plain text, one column per run, errors below."""
    _require(views)
    table = [["", *(plain(view.name) for view in views)]]
    table += [[label, *values] for label, values in facts_side_by_side(views).items()]
    lines = [aligned(table)]
    lines += [f"{plain(view.name)} {view.status}: {plain_lines(failure(view))}" for view in views if failure(view)]
    return "\n".join(lines)


def _require(views: Sequence[RunView]) -> None:
    if not views:
        raise ValueError("no runs to draw: give at least one RunView")


def _style(index: int) -> dict[str, Any]:
    return {"color": run_colour(index), "linestyle": _linestyle(run_dash(index))}


def _linestyle(dash: tuple[int, ...]) -> Any:
    # matplotlib counts in widths of the line.
    return (0, tuple(pixels / 1.6 for pixels in dash)) if dash else "-"


def _label(view: RunView, longest: int = 32) -> str:
    return matplotlib_text(view.name, longest)


def _draw_loss(axes: Axes, views: Sequence[RunView]) -> None:
    titles = dict.fromkeys(view.references.title for view in views)
    axes.set_title(f"loss (nats); points: {', '.join(titles)}", fontsize=10, loc="left")
    axes.set_xlabel(X_LABELS["seconds"], fontsize=9)
    drawn: list[np.ndarray] = []
    filled = 0
    for index, view in placed(views):
        raw, (scores, whole) = curve(view, "loss", "seconds"), heldout_scores(view, "seconds")
        drawn += [raw.y_N, scores.y_N]
        few = downsample(raw, 400)
        axes.plot(few.x_N, few.y_N, color=run_colour(index), alpha=0.4, linewidth=0.6)
        line = downsample(smooth(raw), 400)
        word = view.references.learned(heldout_loss(view))
        label = _label(view) + (f", {learned_briefly(word)}" if word else "")
        axes.plot(line.x_N, line.y_N, label=label, linewidth=1.6, **_style(index))
        # Rings and filled, as the live view draws them.
        rings: dict[str, Any] = {
            "color": run_colour(index), "marker": "o", "linestyle": ":", "markersize": 5, "markeredgewidth": 1.5,
        }  # fmt: skip
        axes.plot(scores.x_N, scores.y_N, markerfacecolor="white", **rings)
        if len(whole):
            axes.plot(whole.x_N, whole.y_N, label="" if filled else ALL_SCORED, **rings)
            filled = 1
    drawn_levels = _draw_levels(axes, views, drawn)
    found = stages(views[0].telemetry.events) if len(views) == 1 else []
    if found:
        axes.set_title(axes.get_title(loc="left"), fontsize=10, loc="left", pad=17)
        mark_stages(axes, found, x_at_steps(views[0], [stage.step for stage in found], "seconds").tolist(), needs=LABEL)
    if any(map(len, drawn)):
        _legend_below(axes, columns=2 if len(views) + filled + drawn_levels > 3 else 3)
    else:
        _say_nothing_yet(axes, views)


def _legend_below(axes: Axes, columns: int) -> None:
    """Under the title of the axis: inside, words would lie across the curves."""
    from matplotlib.transforms import ScaledTranslation

    figure = axes.get_figure(root=True)
    assert figure is not None
    # In inches: a share of the height, which the legend takes from the axes, would vary with its rows.
    below = axes.transAxes + ScaledTranslation(0, -LEGEND_INCHES, figure.dpi_scale_trans)
    axes.legend(
        fontsize=8, frameon=False, ncols=columns, borderpad=0, loc="upper left", bbox_to_anchor=(0, 0),
        bbox_transform=below,
    )  # fmt: skip


def _draw_levels(axes: Axes, views: Sequence[RunView], losses: Sequence[np.ndarray]) -> int:
    """Draw the baselines as lines named in the legend (those out of sight there alone); return how many."""
    levels = levels_of(views)
    shown = loss_range(losses, levels)
    if shown is None:
        return 0
    axes.set_ylim(shown)
    for level in levels:
        style = {"color": REFERENCE_COLOUR, "linestyle": _linestyle(LEVEL_DASHES[level.name]), "linewidth": 1}
        label = level_text(level, shown)
        if shown[0] <= level.nats <= shown[1]:
            axes.axhline(level.nats, label=label, **style)
        else:
            axes.plot([], [], label=label, **style)
    return len(levels)


def _draw_lines(axes: Axes, views: Sequence[RunView], name: str) -> None:
    axes.set_title(scalar(name).label, fontsize=10, loc="left")
    axes.set_xlabel(X_LABELS["seconds"], fontsize=9)
    drawn = False
    for index, view in placed(views):
        speed = name == "tokens_per_second"
        line = downsample(speed_curve(view, "seconds") if speed else curve(view, name, "seconds"), 400)
        axes.plot(line.x_N, line.y_N, linewidth=1.4, **_style(index))
        drawn = drawn or len(line) > 0
    if not drawn:
        _say_nothing_yet(axes, views)


def with_layers(views: Sequence[RunView]) -> RunView | None:
    """Return the run whose layers are drawn: the first in which they differ, else the first with any."""
    known = [view for view in views if any(record.get("state") for record in view.telemetry.layers)]
    differing = (
        view for view in known if any(len(set(record.get("state") or ())) > 1 for record in view.telemetry.layers)
    )
    return next(differing, known[0] if known else None)


def _draw_layers(axes: Axes, views: Sequence[RunView]) -> None:
    shown = with_layers(views)
    if shown is None:
        axes.set_title("layer activity", fontsize=10, loc="left")
        _say_nothing_yet(axes, views)
        return
    whose = f": {_label(shown, 20)}" if len(views) > 1 else ""
    if opening_quantity(shown.telemetry.layers) != "state":
        draw_update_ratio(axes, shown, whose)
        return
    # As the panels around it, and as far as they go: layers are recorded more seldom.
    reach = curve(shown, "loss", "seconds").x_N
    x = "seconds" if len(reach) and reach[-1] > 0 else "step"
    picture = Activity.of(shown, x)
    # Above the names of the stages and the lines of the legend.
    pad = 20 + 12 * -(-len(picture.present) // ENTRIES)
    axes.set_title(f"layer activity{whose}{picture.sampled}", fontsize=10, loc="left", pad=pad)
    picture.draw(axes, LABEL)
    picture.legend(axes, fontsize=7, above=1.09)
    if x == "seconds":
        axes.set_xlim(picture.edges[0], max(picture.edges[-1], reach[-1]))
    axes.set_xlabel(X_LABELS[x], fontsize=9)


def _say_nothing_yet(axes: Axes, views: Sequence[RunView]) -> None:
    text = "nothing measured yet" if any(not view.final for view in views) else "nothing was measured"
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color="#555555")
    axes.set_xticks([])
    axes.set_yticks([])
