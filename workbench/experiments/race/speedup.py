"""With how much of its budget the baseline reaches an arm's score: the unit in which all kinds of arms compare."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

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
        """Ratio and interval, ``1.4x (1.2x to 1.7x)``; one word where all of it lies beyond what was measured."""
        return self.shown[0] if self._beyond else "{} ({} to {})".format(*self.shown)

    @property
    def budget(self) -> str:
        """The same in words, ``1.4x its budget (1.2x to more than 2x)``."""
        factor, low, high = (end.replace("< ", "less than ").replace("> ", "more than ") for end in self.shown)
        return f"{factor} its budget{'' if self._beyond else f' ({low} to {high})'}"

    @property
    def _beyond(self) -> bool:
        return self.low is self.high is None and len(set(self.shown)) == 1


def speedup(arm_S: Sequence[float], baseline_BS: Mapping[float, Sequence[float]], critical: float) -> Speedup | None:
    """The speed-up of an arm with its interval; None where the baseline was trained at one budget only.

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
    """The first ratio at which a gap is 0 or more, and as text; None where it lies before the first or behind the last.

    Args:
        before, behind: what to say of it there.
    """
    at = int(np.argmax(gap_R >= 0))
    if gap_R[at] < 0:
        return None, behind
    if at == 0 and gap_R[0] > 0:
        return None, before
    share = gap_R[at - 1] / (gap_R[at - 1] - gap_R[at]) if at else 0.0
    ratio = math.exp(ratio_R[at - 1] + share * (ratio_R[at] - ratio_R[at - 1]) if at else ratio_R[0])
    return ratio, f"{ratio:.2g}x"
