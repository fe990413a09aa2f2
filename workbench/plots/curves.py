"""Curves out of a run's telemetry: one x axis of four, smoothed, downsampled for drawing.

Shape legend: N points of a curve, K steps asked for.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.base.errors import check_known
from workbench.telemetry.quantities import AXES, SMOOTHING
from workbench.telemetry.scored_text import part_mark
from workbench.telemetry.speed import recent_speeds
from workbench.telemetry.streams import number

if TYPE_CHECKING:
    from workbench.store.view import RunView

ALL_SCORED = "filled: on all held-out tokens"
"""Legend of the score that a run ends with."""
X_LABELS = {axis.name: axis.label for axis in AXES}
_FURTHEST = 200.0
"""Exponents beyond some hundreds overflow: weights are summed over stretches of so many widths."""


@dataclass(frozen=True)
class Curve:
    """One line of a picture.

    Attributes:
        x_N: float64, increasing, in steps, tokens, seconds or FLOPs.
        y_N: float64; NaN and infinities are kept, a diverged run must be seen to have diverged.
        steps_N: float64, increasing: the optimizer steps of the points, which smoothing goes by on every axis; None
            where x is of steps.
    """

    x_N: np.ndarray
    y_N: np.ndarray
    steps_N: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.x_N)

    def __getitem__(self, part: slice) -> Curve:
        return Curve(self.x_N[part], self.y_N[part], None if self.steps_N is None else self.steps_N[part])

    @property
    def last(self) -> float | None:
        """Return the latest finite value, if there is one."""
        finite = self.y_N[np.isfinite(self.y_N)]
        return float(finite[-1]) if len(finite) else None


def axes_of(views: Sequence[RunView]) -> dict[str, str]:
    """Return the x axes that these runs can be drawn over, with titles; FLOPs only where a run has recorded them."""
    has_flops = any("flops" in record for view in views for record in view.telemetry.scalars[:1])
    return {x: label for x, label in X_LABELS.items() if has_flops or x != "flops"}


def check_axis(x: str) -> str:
    """``x`` itself.

    Raises:
        ValueError: not one of step, tokens, seconds, flops.
    """
    check_known("x", x, X_LABELS, ValueError)
    return x


def curve(view: RunView, name: str, x: str = "step") -> Curve:
    """Return one scalar of a run over steps, tokens, seconds or FLOPs; empty when the run has not said it yet.

    Args:
        x: ``step``, ``tokens``, ``seconds`` or ``flops``; a run from before FLOPs were recorded has no such curve.
    """
    # Evaluations carry no FLOPs of their own: they stand at the step where they were made.
    key = "step" if check_axis(x) == "flops" else x
    found = [record for record in view.telemetry.scalars if record.get(name) is not None and key in record]
    xs, ys, steps = (np.array([number(record.get(k)) for record in found], np.float64) for k in (key, name, "step"))
    line = Curve(xs, ys, steps)
    return _over_flops(view, line) if x == "flops" else line


def speed_curve(view: RunView, x: str = "step") -> Curve:
    """Return tokens per second over the last ten seconds of training at every record."""
    raw = curve(view, "tokens_per_second", x)
    seconds, tokens = (curve(view, "tokens_per_second", kind).x_N for kind in ("seconds", "tokens"))
    if not len(raw) == len(seconds) == len(tokens):
        return raw
    return Curve(raw.x_N, recent_speeds(seconds, tokens, raw.y_N[:1].sum()), raw.steps_N)


def heldout_curve(view: RunView, x: str = "step") -> Curve:
    """Return held-out losses in nats, from ``evaluations.json`` or, while that is not written, from the telemetry."""
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


def heldout_scores(view: RunView, x: str = "step") -> tuple[Curve, Curve]:
    """Return all held-out losses as one curve, and once more the one on all tokens that a run ends with, if any."""
    line, recorded = heldout_curve(view, x), view.evaluations.get("heldout")
    # A loss at the end that could not be measured is null there, and not on the curve.
    measured = not recorded or recorded[-1].get("loss") is not None
    ended = measured and not part_mark(view.status)
    count = max(0, len(line) - ended)
    return line, line[count:]


def _over_flops(view: RunView, line: Curve) -> Curve:
    if not any("flops" in record for record in view.telemetry.scalars):
        return Curve(np.empty(0), np.empty(0))
    return Curve(x_at_steps(view, line.x_N.tolist(), "flops"), line.y_N, line.x_N)


def smooth(line: Curve, share: float = SMOOTHING, *, rate: bool = False) -> Curve:
    """Return the mean with weights that fall exponentially on both sides, as ``smooth`` of ``series.js`` does.

    Both sides count alike at the beginning, so that the line does not lag behind a loss that falls; towards the end it
    looks back only, or it would end in a spike of noise. Weights fall with the distance in steps, not per sample, so a
    downsampled curve is smoothed like the whole.

    Args:
        line: the raw curve; points that are not finite count for nothing.
        share: of all steps, after which a sample weighs 1/e; 0 leaves the curve as it is.
        rate: smoothed over the time spent: a mean of rates would count the slow steps too little.
    """
    steps_N = line.x_N if line.steps_N is None else line.steps_N
    width = share * (steps_N[-1] - steps_N[0]) if len(line) else 0.0
    if not width > 0:
        return line
    with np.errstate(invalid="ignore", divide="ignore"):
        y_N = 1.0 / line.y_N if rate else line.y_N
        own_N = np.isfinite(y_N).astype(np.float64)
        value_N = np.where(own_N > 0, y_N, 0.0)
        at_N = (steps_N - steps_N[0]) / width
        past, past_weight = _faded(at_N, value_N), _faded(at_N, own_N)
        future, future_weight = (_faded((at_N[-1] - at_N)[::-1], of_N[::-1])[::-1] for of_N in (value_N, own_N))
        before_N, after_N = past_weight - own_N, future_weight - own_N
        share_N = np.where(after_N > before_N, before_N / after_N, 1.0)
        weight_N = own_N + before_N + share_N * after_N
        mean_N = np.where(weight_N > 0, (past + share_N * (future - value_N)) / weight_N, np.nan)
        return Curve(line.x_N, 1.0 / mean_N if rate else mean_N, line.steps_N)


def _faded(at_N: np.ndarray, value_N: np.ndarray) -> np.ndarray:
    """Sum of each value and those before it, which weigh e^-distance."""
    out_N = np.empty_like(value_N)
    carried, last, start = 0.0, 0.0, 0
    while start < len(at_N):
        # Running sums of growing weights instead of a loop over the points: a long run has a hundred thousand.
        end = int(np.searchsorted(at_N, at_N[start] + _FURTHEST, side="right"))
        grown_N = np.exp(at_N[start:end] - at_N[start])
        sums_N = np.cumsum(value_N[start:end] * grown_N) + carried * math.exp(last - at_N[start])
        out_N[start:end] = sums_N / grown_N
        carried, last, start = float(out_N[end - 1]), float(at_N[end - 1]), end
    return out_N


def downsample(line: Curve, points: int = 1200) -> Curve:
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
    return Curve(line.x_N[kept], line.y_N[kept], None if line.steps_N is None else line.steps_N[kept])


def x_at_steps(view: RunView, steps_K: Sequence[float], x: str) -> np.ndarray:
    """Return where steps lie on the x axis (K,): records of layers and events carry the step alone.

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
