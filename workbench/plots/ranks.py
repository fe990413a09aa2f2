"""The picture of several processes: who waits for whom, and what each costs a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from workbench.plots.curves import x_at_steps
from workbench.plots.figure import finish, require, x_title
from workbench.plots.palette import plotly_text
from workbench.plots.tables import table
from workbench.telemetry.quantities import RAMP, scalar
from workbench.telemetry.waiting import late_mean, processes, waiting_rows, waits

if TYPE_CHECKING:
    from workbench.store.view import RunView

# Shape legend: R processes, K records, C columns of the picture.

MOST_COLUMNS = 400


def ranks_figure(view: RunView, x: str = "step") -> go.Figure:
    """Heat map of one run: processes from the first at the bottom, time to the right, milliseconds of waiting.

    A dark row is the process that all others wait for.

    Args:
        x: ``step``, ``tokens``, ``seconds`` or ``flops``.

    Raises:
        ValueError: an unknown x.
    """
    require([view], x)
    steps_K, waits_RK = waits(view.telemetry.scalars)
    figure = go.Figure()
    if steps_K:
        # Means of neighbours: one long wait in a thousand is then still seen, and a row stays comparable.
        parts = np.array_split(np.arange(len(steps_K)), min(MOST_COLUMNS, len(steps_K)))
        shown_RC = np.stack([np.nanmean(waits_RK[:, part], axis=1) for part in parts], axis=1)
        at = x_at_steps(view, [steps_K[part[-1]] for part in parts], x)
        ramp = [[place / (len(RAMP) - 1), colour] for place, colour in enumerate(RAMP)]
        figure.add_trace(
            go.Heatmap(
                x=at, y=[str(rank) for rank in processes(view.telemetry.scalars)], z=shown_RC, colorscale=ramp, zmin=0,
                colorbar={"title": "ms"}, hovertemplate="process %{y} waited %{z:.1f} ms<extra></extra>",
            )
        )  # fmt: skip
    figure.update_layout(title=f"Waiting for other processes (ms), {plotly_text(view.name)}")
    figure.update_layout(xaxis_title=x_title(x), yaxis_title="process")
    figure.update_yaxes(type="category", showgrid=False)
    return finish(figure, [view], x, height=320)


def ranks_table(view: RunView) -> str:
    """Return who waits as an HTML table, and what a process sends in a step; empty for one process."""
    scalars = view.telemetry.scalars
    if not (rows := waiting_rows(scalars)):
        return ""
    sent, waited, step = (late_mean(scalars, name) for name in ("sent_mib", "waited_ms", "step_ms"))
    share = f", {waited / step:.0%} of the step" if step else ""
    text = f"Each process sends {sent:.1f} MiB in a step; the first then waits {waited:.1f} ms for what is sent{share}."
    heads = (f"{scalar('waited_ms').title} (ms)", "of a step", "")
    return f"{table(heads, rows)}<p>{text}</p>"


def trained_together(views: Sequence[RunView]) -> list[RunView]:
    """Return the runs that several processes trained."""
    return [view for view in views if processes(view.telemetry.scalars)]
