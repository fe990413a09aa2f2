"""Seconds until an arm reaches the score that the baseline ends with: read off the arm's held-out curves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.experiments.words import duration


@dataclass(frozen=True)
class SecondsToTarget:
    """When an arm reaches the score that the baseline ends with at the same seed.

    Read off a run that goes on, whose learning rate has not yet fallen: never sooner than with a schedule that ends
    there. How much budget the baseline would need instead, of runs trained whole, is the speed-up
    (:mod:`workbench.experiments.race.speedup`).

    Attributes:
        seconds, low, high: reference time, geometric mean over seeds with its interval; None where a seed never gets
            there.
        reached, seeds: how many seeds do, of so many.
        baseline: reference seconds that the baseline takes.
    """

    seconds: float | None
    low: float | None
    high: float | None
    reached: int
    seeds: int
    baseline: float

    @property
    def text(self) -> str:
        """Seconds with their interval; how many seeds where not all get there."""
        if self.seconds is None or self.low is None or self.high is None:
            return f"reached by {self.reached or 'none'} of {self.seeds} seeds"
        return f"{_about(self.seconds)} ({_about(self.low)} to {_about(self.high)})"

    @property
    def against(self) -> str:
        """:attr:`text` beside what the baseline takes."""
        return f"{self.text}; the baseline takes {_about(self.baseline)}"


def seconds_to_target(
    curves_S: Sequence[Sequence[tuple[float, float]]], target_S: Sequence[float], baseline: float, critical: float
) -> SecondsToTarget:
    """Of at least two seeds; their times are averaged as logarithms, which treats half and twice alike.

    Args:
        curves_S: by seed, reference seconds and held-out score (lower is better) in the order of time.
        target_S: by seed, the score that the baseline ends with. baseline: the seconds that it takes.
        critical: value of |t| that bounds the interval, as of the difference at this look.
    """
    times = [crossing(curve, target) for curve, target in zip(curves_S, target_S, strict=True)]
    known = [time for time in times if time is not None and time > 0]
    if len(known) < len(times):
        return SecondsToTarget(None, None, None, len(known), len(times), baseline)
    log_S = np.log(known)
    mean, half = float(log_S.mean()), critical * float(log_S.std(ddof=1)) / math.sqrt(len(log_S))
    return SecondsToTarget(
        math.exp(mean), math.exp(mean - half), math.exp(mean + half), len(known), len(times), baseline
    )


def crossing(curve: Sequence[tuple[float, float]], target: float) -> float | None:
    """The first time at which a curve is at ``target`` or below, straight between its points; None if it never is.

    Example:
        >>> crossing([(10.0, 4.0), (20.0, 3.0), (30.0, 2.5)], 3.5)
        15.0
    """
    before: tuple[float, float] | None = None
    for time, score in curve:
        if score <= target:
            if before is None:
                return time
            (left, above) = before
            return left + (time - left) * (above - target) / (above - score)
        before = (time, score)
    return None


def _about(seconds: float) -> str:
    return duration(seconds) if seconds >= 10 else f"{seconds:.2g} s"
