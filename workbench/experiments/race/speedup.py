"""Speed-ups: the budget at which the baseline reaches an arm's score, and when an arm reaches the baseline's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from workbench.experiments.words import duration

# Shape legend: B budgets of the baseline, S seeds, R candidate ratios.

_RATIOS_PER_DOUBLING = 200


@dataclass(frozen=True)
class Speedup:
    """The baseline reaches an arm's score with ``factor`` times its budget: above 1 the arm is ahead.

    Attributes:
        factor, low, high: None where they lie beyond the measured budgets.
        shown: the three as texts; beyond the measured budgets as ``> 2x`` and the like.
    """

    factor: float | None
    low: float | None
    high: float | None
    shown: tuple[str, str, str]

    @property
    def text(self) -> str:
        """Ratio and interval, ``1.4x (1.2x to 1.7x)``; the ratio alone where all lies beyond the measured budgets."""
        return self.shown[0] if self._beyond else "{} ({} to {})".format(*self.shown)

    def words(self, what: str) -> str:
        """Return the same in words, ``1.4x its time (1.2x to more than 2x)``.

        Args:
            what: a word for the budget.
        """
        factor, low, high = (end.replace("< ", "less than ").replace("> ", "more than ") for end in self.shown)
        return f"{factor} its {what}{'' if self._beyond else f' ({low} to {high})'}"

    @property
    def _beyond(self) -> bool:
        return self.low is self.high is None and len(set(self.shown)) == 1


def speedup(arm_S: Sequence[float], baseline_BS: Mapping[float, Sequence[float]], critical: float) -> Speedup | None:
    """Return the speed-up of an arm with its interval; None where the baseline was trained at one budget only.

    For each ratio r the baseline's score of a seed is interpolated over the logarithm of the budget between its own
    runs, and the ratios at which a paired t test does not tell the arm from it are the interval (Fieller 1954): exact
    for normal scores, with the noise of every run in it, and the very interval of the difference at r = 1. Nothing is
    extrapolated.

    Args:
        arm_S: scores of the arm by seed, lower is better.
        baseline_BS: scores of the baseline by budget (1 is the race's own) and seed.
        critical: value of |t| that bounds the interval of the difference.
    """
    budgets = sorted(baseline_BS)
    if len(budgets) < 2:
        return None
    knots_B = np.log([float(budget) for budget in budgets])
    doublings = (knots_B[-1] - knots_B[0]) / math.log(2)
    # The knots themselves, so that a ratio of exactly 1 is among them.
    between_R = np.linspace(knots_B[0], knots_B[-1], int(doublings * _RATIOS_PER_DOUBLING))
    ratio_R = np.unique(np.concatenate([between_R, knots_B]))
    score_BS = np.array([baseline_BS[budget] for budget in budgets], dtype=np.float64)
    baseline_RS = np.stack([np.interp(ratio_R, knots_B, score_S) for score_S in score_BS.T], axis=1)
    gap_RS = np.asarray(arm_S, dtype=np.float64) - baseline_RS
    mean_R = gap_RS.mean(axis=1)
    half_R = critical * gap_RS.std(axis=1, ddof=1) / math.sqrt(gap_RS.shape[1])
    # The baseline gets better with its budget, so the gap rises with the ratio: below 0 the arm is still ahead. A curve
    # that wavers, or whose noise does, passes 0 several times: all ratios that a test does not tell apart lie between
    # the first place at which the arm may be behind and the last one at which it may be ahead.
    below, above = f"< {budgets[0]:g}x", f"> {budgets[-1]:g}x"
    low = _first(ratio_R, mean_R + half_R, below, above)
    factor, high = (_first(ratio_R[::-1], -gap_R[::-1], above, below) for gap_R in (mean_R, mean_R - half_R))
    return Speedup(factor[0], low[0], high[0], (factor[1], low[1], high[1]))


def _first(ratio_R: np.ndarray, gap_R: np.ndarray, before: str, behind: str) -> tuple[float | None, str]:
    """Return the first ratio at which a gap is 0 or more, and as text; None before the first or behind the last.

    Args:
        before, behind: texts for those places.
    """
    at = int(np.argmax(gap_R >= 0))
    if gap_R[at] < 0:
        return None, behind
    if at == 0 and gap_R[0] > 0:
        return None, before
    share = gap_R[at - 1] / (gap_R[at - 1] - gap_R[at]) if at else 0.0
    ratio = math.exp(ratio_R[at - 1] + share * (ratio_R[at] - ratio_R[at - 1]) if at else ratio_R[0])
    return ratio, f"{ratio:.2g}x"


@dataclass(frozen=True)
class SecondsToTarget:
    """The time after which an arm reaches the score that the baseline ends with at the same seed.

    Read off a run that goes on, whose learning rate has not yet fallen: never sooner than with a schedule that ends
    there. How much budget the baseline would need instead, of runs trained whole, is the
    :class:`Speedup`.

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
        """Seconds with their interval; the count of seeds where not all get there."""
        if self.seconds is None or self.low is None or self.high is None:
            return f"reached by {self.reached or 'none'} of {self.seeds} seeds"
        return f"{_about(self.seconds)} ({_about(self.low)} to {_about(self.high)})"


def seconds_to_target(
    curves_S: Sequence[Sequence[tuple[float, float]]], target_S: Sequence[float], baseline: float, critical: float
) -> SecondsToTarget:
    """Return the time to a target of at least two seeds, averaged as logarithms, which treats half and twice alike.

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
    """Return the first time at which a curve is at ``target`` or below, straight between its points; None if never.

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
