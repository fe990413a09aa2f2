"""The layer picture without a browser: a panel of the summary, and of the pictures in the cards of depth methods."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.plots.activity import (
    Stage,
    Work,
    boundary_labels,
    chosen_columns,
    column_edges,
    matrix,
    stage_starts,
    stages,
    state_codes,
    work,
)
from workbench.plots.curves import X_LABELS, x_at_steps
from workbench.plots.palette import matplotlib_text
from workbench.telemetry.quantities import LAYER_STATES, PER_LAYER, RAMP, SLICES, LayerState

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend

    from workbench.store.view import RunView

# Shape legend: L layers, K columns (telemetry records), S slices of a layer's row.

MOST_COLUMNS = 300
"""Columns of the picture; more than the panel has pixels would hide each other."""
ENTRIES = 4
"""Entries of the legend in one line."""


@dataclass(frozen=True)
class Activity:
    """Layer activity of one run, as pictures show it.

    Attributes:
        codes_LK: of states. edges: where columns begin and end, (K + 1,), on the x axis.
        stages: as announced. where: their positions on the x axis. done: work of all records, not of the columns alone.
        columns: the records shown.
        every: steps from one record to the next.
    """

    codes_LK: np.ndarray
    edges: np.ndarray
    stages: list[Stage]
    where: list[float]
    done: Work
    columns: np.ndarray
    every: int = 1

    @classmethod
    def of(cls, view: RunView, x: str = "step") -> Activity:
        """Read a run with at least one record of its layers' states, over ``step``, ``tokens`` or ``seconds``."""
        records = [record for record in view.telemetry.layers if record.get("state")]
        codes_LK, found = state_codes(matrix(records, "state")), stages(view.telemetry.events)
        columns = chosen_columns(stage_starts(codes_LK), MOST_COLUMNS)
        starts = [stage.step for stage in found]
        steps = [record["step"] for record in records]
        edges = x_at_steps(view, column_edges([steps[k] for k in columns], starts).tolist(), x)
        where = x_at_steps(view, starts, x).tolist()
        every = int(np.median(np.diff(steps))) if len(steps) > 2 else 1
        return cls(codes_LK[:, columns], edges, found, where, work(records), columns, every)

    @property
    def sampled(self) -> str:
        """Return words for records of one step of several; what chance skips may differ in each step."""
        return f", one of every {self.every} steps" if self.every > 1 else ""

    @property
    def present(self) -> list[LayerState]:
        """Return the states that occur."""
        return [state for code, state in enumerate(LAYER_STATES) if (self.codes_LK == code).any()]

    def draw(self, axes: Axes, needs: float = 0.1) -> None:
        """Draw the states, layer 1 at the bottom, with boundaries of stages; ``needs``: as in :func:`mark_stages`."""
        layers = len(self.codes_LK)
        ink_CS4 = np.array([[_ink(state, mark) for mark in state.shape] for state in LAYER_STATES])
        pixels = ink_CS4[self.codes_LK].transpose(0, 2, 1, 3).reshape(layers * SLICES, -1, 4)
        axes.pcolormesh(self.edges, 0.5 + np.arange(layers * SLICES + 1) / SLICES, pixels, rasterized=True)
        _number_layers(axes, layers)
        axes.tick_params(labelsize=8)
        axes.set_xlim(self.edges[0], self.edges[-1])
        axes.spines[["top", "right"]].set_visible(False)
        self.mark(axes, needs=needs)

    def mark(self, axes: Axes, labelled: bool = True, needs: float = 0.1) -> None:
        """Boundaries of stages."""
        mark_stages(axes, self.stages, self.where, labelled, needs)

    def legend(self, axes: Axes, fontsize: float, above: float) -> None:
        """Write the states that occur above the panel: a legend of what a method does not do explains nothing."""
        present = self.present
        # Any, because matplotlib's stubs know no handles but artists; a handler draws ours.
        handles: Any = present
        drawn = axes.legend(
            handles, [state.words for state in present], handler_map={LayerState: _Swatch()}, fontsize=fontsize,
            frameon=False, ncols=min(len(present), ENTRIES), loc="lower left", bbox_to_anchor=(0.0, above),
            borderaxespad=0.0, borderpad=0.0, handlelength=1.3, handleheight=1.2, handletextpad=0.5, columnspacing=1.2,
        )  # fmt: skip
        # It is wider than some panels, which must not make room for it.
        drawn.set_in_layout(False)


def mark_stages(axes: Axes, found: list[Stage], where: list[float], labelled: bool = True, needs: float = 0.1) -> None:
    """Boundaries of stages as dashed lines; their names above the panel.

    Args:
        where: their positions on the x axis.
        labelled: write "stage 2 of 4" above each.
        needs: share of the panel's width that this takes.
    """
    reach = axes.get_xlim()
    # Over a heat map a light edge parts the line from whatever colour is there; under curves it would cut them.
    over = bool(axes.collections)
    for at, text in zip(where, boundary_labels(found, where, reach, needs), strict=True):
        # Nothing is parted at the very beginning.
        if at > max(0.0, reach[0]):
            if over:
                axes.axvline(at, color="white", linewidth=2.4)
            axes.axvline(at, color="#333333", linewidth=1.2, linestyle=(0, (4, 3)), zorder=2 if over else 1)
        if labelled and text:
            axes.annotate(
                matplotlib_text(text), (at, 1.0), (1, 2), xycoords=("data", "axes fraction"),
                textcoords="offset points", fontsize=7.5, color="#333333", va="bottom", annotation_clip=False,
            )  # fmt: skip
    axes.set_xlim(reach)


def _ink(state: LayerState, mark: str) -> tuple[float, float, float, float]:
    red, green, blue = (int(state.colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue, state.opacity if mark == "#" else 0.0


class _Swatch:
    """Draws a state's shape into a legend."""

    def legend_artist(self, legend: Legend, state: LayerState, fontsize: float, box: Any) -> Artist:
        """Return one rectangle per slice with ink, in the box that the legend keeps for it."""
        from matplotlib.patches import Rectangle

        slices: list[Rectangle] = [
            Rectangle(
                (box.xdescent, box.ydescent + place * box.height / SLICES), box.width, box.height / SLICES,
                facecolor=state.colour, alpha=state.opacity, linewidth=0, transform=box.get_transform(),
            )
            for place, mark in enumerate(state.shape)
            if mark == "#"
        ]  # fmt: skip
        for piece in slices:
            box.add_artist(piece)
        return slices[0]


def small_png(pixels_HW4: np.ndarray) -> bytes:
    """Return PNG of RGBA pixels (H, W, 4), reduced to 128 colours: line drawings need no more,
    and it is a third as large.
    """
    from PIL import Image

    # Median cut, the default, shares colours out by area: the thin line of a run came out 114 of 255 from its colour.
    octree, none = Image.Quantize.FASTOCTREE, Image.Dither.NONE
    image = Image.fromarray(pixels_HW4).convert("RGB").quantize(128, method=octree, dither=none)
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def _number_layers(axes: Axes, layers: int) -> None:
    """Number at most twelve layers on the vertical axis, in whole numbers."""
    axes.set_ylabel("layer (1 at the input)", fontsize=8)
    axes.set_ylim(0.5, layers + 0.5)
    axes.set_yticks(range(1, layers + 1, -(-layers // 12)))


def draw_update_ratio(axes: Axes, view: RunView, whose: str) -> None:
    """Draw how far each layer's weights move in a step, layer 1 at the bottom."""
    from matplotlib.colors import LinearSegmentedColormap, LogNorm

    records = [record for record in view.telemetry.layers if record.get("update_ratio")]
    columns = np.unique(np.linspace(0, len(records) - 1, min(len(records), MOST_COLUMNS)).round().astype(int))
    steps = [records[k]["step"] for k in columns]
    values_LK = matrix([records[k] for k in columns], "update_ratio")
    edges = x_at_steps(view, column_edges(steps, ()).tolist(), "seconds")
    shown = values_LK[np.isfinite(values_LK) & (values_LK > 0)]
    norm = LogNorm(shown.min(), shown.max()) if len(shown) and shown.min() < shown.max() else None
    ramp = LinearSegmentedColormap.from_list("ramp", RAMP)
    mesh = axes.pcolormesh(
        edges, 0.5 + np.arange(len(values_LK) + 1), np.where(values_LK > 0, values_LK, np.nan), norm=norm, cmap=ramp,
        rasterized=True,
    )  # fmt: skip
    axes.figure.colorbar(mesh, ax=axes, pad=0.02).ax.tick_params(labelsize=7)
    axes.set_title(f"layers: {PER_LAYER['update_ratio'].label}{whose}", fontsize=10, loc="left")
    _number_layers(axes, len(values_LK))
    axes.set_xlabel(X_LABELS["seconds"], fontsize=9)
