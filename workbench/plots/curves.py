"""Curves out of a run's telemetry: one x axis of four, smoothed, thinned for drawing.

Shape legend: N points of a curve, K steps asked for.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import unknown
from workbench.quantities import AXES
from workbench.telemetry import number

if TYPE_CHECKING:
    from workbench.runs.view import RunView

X_LABELS = {axis.name: axis.label for axis in AXES}
SMOOTHING = 0.03
"""Share of a curve that one smoothed point averages over."""


@dataclass(frozen=True)
class Curve:
    """One line of a picture.

    Attributes:
        x_N: float64, increasing, in steps, tokens, seconds or FLOPs.
        y_N: float64; NaN and infinities are kept, a diverged run must be seen to have diverged.
    """

    x_N: np.ndarray
    y_N: np.ndarray

    def __len__(self) -> int:
        return len(self.x_N)

    @property
    def last(self) -> float | None:
        """The latest finite value, if there is one."""
        finite = self.y_N[np.isfinite(self.y_N)]
        return float(finite[-1]) if len(finite) else None


def axes_of(views: Sequence[RunView]) -> dict[str, str]:
    """The x axes that these runs can be drawn over, with their titles: FLOPs only where a run has recorded them."""
    has_flops = any("flops" in record for view in views for record in view.telemetry.scalars[:1])
    return {x: label for x, label in X_LABELS.items() if has_flops or x != "flops"}


def check_axis(x: str) -> str:
    """``x`` itself.

    Raises:
        ValueError: not one of step, tokens, seconds, flops.
    """
    if x not in X_LABELS:
        raise ValueError(unknown("x", x, X_LABELS))
    return x


def curve(view: RunView, name: str, x: str = "step") -> Curve:
    """One scalar of a run over steps, tokens, seconds or FLOPs; empty when the run has not said it yet.

    Args:
        x: ``step``, ``tokens``, ``seconds`` or ``flops``; a run from before FLOPs were recorded has no such curve.
    """
    # Evaluations carry no FLOPs of their own: they stand at the step where they were made.
    xs, ys = view.telemetry.series(name, "step" if check_axis(x) == "flops" else x)
    line = Curve(np.asarray(xs, dtype=np.float64), np.asarray(ys, dtype=np.float64))
    return _over_flops(view, line) if x == "flops" else line


def heldout_curve(view: RunView, x: str = "step") -> Curve:
    """Held-out losses in nats, from ``evaluations.json`` or, while that is not written, from the telemetry."""
    # A loss that could not be measured is null there.
    recorded = view.evaluations.get("heldout")
    points: list[dict[str, Any]] = [
        point
        for point in (recorded if isinstance(recorded, list) else [])
        if isinstance(point, dict) and point.get("loss") is not None
    ]
    if not points:
        return curve(view, "heldout_loss", x)
    key = "step" if check_axis(x) == "flops" else x
    line = Curve(
        np.array([number(point.get(key)) for point in points], dtype=np.float64),
        np.array([number(point["loss"]) for point in points], dtype=np.float64),
    )
    return _over_flops(view, line) if x == "flops" else line


def _over_flops(view: RunView, line: Curve) -> Curve:
    if not any("flops" in record for record in view.telemetry.scalars):
        return Curve(np.empty(0), np.empty(0))
    return Curve(x_at_steps(view, line.x_N.tolist(), "flops"), line.y_N)


def smooth(line: Curve, share: float = SMOOTHING) -> Curve:
    """A centred moving mean, so that the line has no lag; towards the end it looks back only.

    Args:
        line: the raw curve; points that are not finite count for nothing.
        share: width of the window as a share of all points; 0 leaves the curve as it is.
    """
    count = len(line)
    half = int(count * share) // 2
    if half < 1:
        return line
    finite_N = np.isfinite(line.y_N)
    # Running sums: the cost does not grow with the window, which for a long run is tens of thousands of points.
    sums = np.concatenate([[0.0], np.cumsum(np.where(finite_N, line.y_N, 0.0))])
    counts = np.concatenate([[0], np.cumsum(finite_N)])
    index_N = np.arange(count)
    # At the start the window shrinks on both sides: a lopsided one would bend the steep first part of a loss curve.
    # At the end it keeps its past: shrunk to the last raw value, every curve would end in a spike of noise.
    back_N = np.minimum(half, index_N)
    ahead_N = np.minimum(back_N, count - 1 - index_N)
    low_N, high_N = index_N - back_N, index_N + ahead_N + 1
    inside_N = counts[high_N] - counts[low_N]
    with np.errstate(invalid="ignore", divide="ignore"):
        return Curve(line.x_N, np.where(inside_N > 0, (sums[high_N] - sums[low_N]) / inside_N, np.nan))


def thin(line: Curve, points: int = 1200) -> Curve:
    """At most about ``points`` points: the lowest and the highest of each bucket, so that no spike disappears."""
    if len(line) <= points:
        return line
    edges = np.linspace(0, len(line), points // 2 + 1).astype(int)
    # The ends stay, or the line would seem to begin late or to have stopped early.
    keep: set[int] = {0, len(line) - 1}
    for low, high in itertools.pairwise(edges):
        bucket = line.y_N[low:high]
        if np.isnan(bucket).all():
            keep.add(int(low))
        else:
            keep.update((int(low + np.nanargmin(bucket)), int(low + np.nanargmax(bucket))))
    kept = np.array(sorted(keep))
    return Curve(line.x_N[kept], line.y_N[kept])


def x_at_steps(view: RunView, steps_K: Sequence[float], x: str) -> np.ndarray:
    """Where steps lie on the x axis (K,): records of layers and events carry the step alone.

    Returns:
        float64 positions, interpolated between scalar records; the steps themselves for ``x="step"``.
    """
    asked_K = np.asarray(steps_K, dtype=np.float64)
    if check_axis(x) == "step":
        return asked_K
    # Interpolated, since records of layers and events say only the step, while people compare runs by time.
    records = [(record["step"], at) for record in view.telemetry.scalars if not math.isnan(at := number(record.get(x)))]
    if not records:
        return np.zeros_like(asked_K)
    known_steps, known_x = np.array(records, dtype=np.float64).T
    # Training starts at zero in every unit; without that point, events of step 0 would sit on the first record.
    return np.interp(asked_K, np.concatenate([[0.0], known_steps]), np.concatenate([[0.0], known_x]))
