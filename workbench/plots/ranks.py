"""The picture of several processes: who waits for whom, and what each costs a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from workbench.plots.curves import curve, x_at_steps
from workbench.plots.figure import finish, require, x_title
from workbench.plots.palette import plotly_text
from workbench.plots.tables import table
from workbench.telemetry.quantities import RAMP, scalar

if TYPE_CHECKING:
    from workbench.store.view import RunView

# Shape legend: R processes, K columns (telemetry records).

WAITING = "waiting_ms"
MOST_COLUMNS = 400


def processes_of(view: RunView) -> list[int]:
    """Return the numbers of the processes that a run has told of; none where one trained alone."""
    names = {name for record in view.telemetry.scalars for name in record if name.startswith(f"{WAITING}/")}
    return sorted(int(name.partition("/")[2]) for name in names if name.partition("/")[2].isdigit())


def waits(view: RunView) -> tuple[list[int], np.ndarray]:
    """Return steps of records, and milliseconds that each process waited for others, (R, K); NaN where none is told."""
    ranks = processes_of(view)
    records = [record for record in view.telemetry.scalars if any(f"{WAITING}/{rank}" in record for rank in ranks)]
    found = [[float(record.get(f"{WAITING}/{rank}", np.nan)) for record in records] for rank in ranks]
    return [int(record["step"]) for record in records], np.array(found).reshape(len(ranks), len(records))


def ranks_figure(view: RunView, x: str = "step") -> go.Figure:
    """Heat map of one run: processes from the first at the bottom, time to the right, milliseconds of waiting.

    A dark row is the process that all others wait for.

    Args:
        x: ``step``, ``tokens``, ``seconds`` or ``flops``.

    Raises:
        ValueError: an unknown x.
    """
    require([view], x)
    steps_K, waits_RK = waits(view)
    figure = go.Figure()
    if len(steps_K):
        # Means of neighbours: one long wait in a thousand is then still seen, and a row stays comparable.
        parts = np.array_split(np.arange(len(steps_K)), min(MOST_COLUMNS, len(steps_K)))
        shown_RC = np.stack([np.nanmean(waits_RK[:, part], axis=1) for part in parts], axis=1)
        at = x_at_steps(view, [steps_K[part[-1]] for part in parts], x)
        ramp = [[place / (len(RAMP) - 1), colour] for place, colour in enumerate(RAMP)]
        figure.add_trace(
            go.Heatmap(
                x=at, y=[str(rank) for rank in processes_of(view)], z=shown_RC, colorscale=ramp, zmin=0,
                colorbar={"title": "ms"}, hovertemplate="process %{y} waited %{z:.1f} ms<extra></extra>",
            )
        )  # fmt: skip
    figure.update_layout(title=f"Waiting for other processes (ms), {plotly_text(view.name)}")
    figure.update_layout(xaxis_title=x_title(x), yaxis_title="process")
    figure.update_yaxes(type="category", showgrid=False)
    return finish(figure, [view], x, height=320)


def ranks_rows(view: RunView) -> list[tuple[str, list[str]]]:
    """Return by process: mean milliseconds a step that it waited, their share of a step; the slowest and fastest named.

    Over the second half of the run, past compilation and caches; empty where one process trained alone.
    """
    _, waits_RK = waits(view)
    if not waits_RK.size:
        return []
    mean_R = np.nanmean(waits_RK[:, waits_RK.shape[1] // 2 :], axis=1)
    step = _late_mean(view, "step_ms")
    words = {int(np.argmin(mean_R)): "the slowest: others wait for it", int(np.argmax(mean_R)): "the fastest"}
    words = words if len(mean_R) > 1 and np.ptp(mean_R) > 0 else {}
    return [
        (f"process {rank}", [f"{each:.1f}", f"{each / step:.0%}" if step else "", words.get(place, "")])
        for place, (rank, each) in enumerate(zip(processes_of(view), mean_R, strict=True))
    ]


def ranks_table(view: RunView) -> str:
    """Return :func:`ranks_rows` as an HTML table, and what a process sends in a step; empty for one process."""
    rows = ranks_rows(view)
    if not rows:
        return ""
    sent, waited, step = (_late_mean(view, name) for name in ("sent_mib", "waited_ms", "step_ms"))
    share = f", {waited / step:.0%} of the step" if step else ""
    text = (
        f"Each process sends {sent:.1f} MiB in a step; the first is held up for {waited:.1f} ms by what is sent{share}."
    )
    heads = (f"{scalar('waited_ms').title} (ms)", "of a step", "")
    return f"{table(heads, rows)}<p>{text}</p>"


def trained_together(views: Sequence[RunView]) -> list[RunView]:
    """Return the runs that several processes trained."""
    return [view for view in views if processes_of(view)]


def _late_mean(view: RunView, name: str) -> float:
    values = curve(view, name).y_N
    late = values[len(values) // 2 :]
    return float(np.nanmean(late)) if np.isfinite(late).any() else 0.0
