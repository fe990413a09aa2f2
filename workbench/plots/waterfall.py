"""The waterfall picture: factors one after the other, from a starting point to the whole."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.plots.layers_static import small_png
from workbench.plots.palette import matplotlib_text
from workbench.telemetry.quantities import REFERENCE_COLOUR, run_colour


def waterfall_png(title: str, start: str, factors: Sequence[tuple[str, float]]) -> bytes:
    """Return a bar for each factor, from the product of those before it to its own, on a logarithmic axis;
    the whole below.

    Args:
        title: of the picture.
        start: what all begins with, the 1 of the axis.
        factors: (what is new, factor > 0), in order.

    Returns:
        PNG, 900 pixels wide.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    ends = np.cumprod([1.0, *(factor for _, factor in factors)])
    names = [matplotlib_text(start), *(matplotlib_text(what) for what, _ in factors), "all together"]
    lows = [1.0, *np.minimum(ends[:-1], ends[1:]), 1.0]
    highs = [1.0, *np.maximum(ends[:-1], ends[1:]), ends[-1]]
    colours = ["none", *(run_colour(0 if factor >= 1 else 1) for _, factor in factors), REFERENCE_COLOUR]
    texts = ["1x", *(f"x {factor:.2f}" for _, factor in factors), f"{ends[-1]:.2f}x"]
    figure = Figure(figsize=(9.0, 1.0 + 0.34 * len(names)), dpi=100, layout="constrained")
    canvas, axes = FigureCanvasAgg(figure), figure.subplots()
    # Over ratios, not differences: a factor of 2 is as wide wherever it stands.
    axes.set_xscale("log")
    places = np.arange(len(names))
    axes.barh(places, np.subtract(highs, lows), left=lows, color=colours, height=0.62)
    for place, high, text in zip(places, highs, texts, strict=True):
        axes.annotate(text, (high, place), (4, 0), textcoords="offset points", va="center", fontsize=9)
    axes.set_yticks(places, names, fontsize=9)
    axes.invert_yaxis()
    axes.set_xlim(min(lows) * 0.97, max(highs) * 1.25)
    axes.set_title(matplotlib_text(title), fontsize=11, loc="left")
    ticks = [tick for tick in (0.25, 0.5, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32) if min(lows) <= tick <= max(highs)]
    axes.set_xticks(ticks, [f"{tick:g}x" for tick in ticks], fontsize=8)
    axes.minorticks_off()
    axes.grid(axis="x", alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    canvas.draw()
    return small_png(np.asarray(canvas.buffer_rgba()))
