r"""Paired differences judged at a few looks, with an error rate that holds over all of them together.

Of :math:`n` seeds, :math:`d_i` is the held-out score of an arm minus the baseline's at seed :math:`i`, and
:math:`t_n = \sqrt n\, \bar d / s_d`. After :math:`n_k` of :math:`N` seeds :math:`\alpha\, n_k / N` is spent (Lan and
DeMets 1983; Kim and DeMets 1987, power family, :math:`\rho = 1`): the critical values :math:`c_k` of :math:`|t|` solve

.. math:: P(|t_{n_j}| \le c_j \text{ for } j < k,\ |t_{n_k}| > c_k) = \alpha (n_k - n_{k-1}) / N

for normal differences of any variance. :math:`\bar d \pm c_k s_d / \sqrt{n_k}` are repeated confidence intervals
(Jennison and Turnbull 1989): all of them hold the true difference with probability :math:`1 - \alpha`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

Word = Literal["better", "worse", "equivalent", "undecided"]

LOOKS = (4, 6, 10)
"""Numbers of seeds after which differences are judged; the last look is after the last seed."""
FEWEST_SEEDS, MOST_SEEDS = 2, 100
ALPHA = 0.05
"""Two-sided, of a whole race: shared equally by its arms (Bonferroni)."""
LEAST_ALPHA = 1e-4
"""Below it critical values would hang on a few of the simulated races."""
MARGIN_NATS = 0.02
"""Arms whose difference lies within it, whole interval and all, are called equivalent."""
MOST_MORE = 30
"""More seeds than this are not counted."""
SPREAD_NATS = 0.02
"""Standard deviation of paired differences that a forecast of power supposes: the median of the study's 55 is 0.021."""
# An increment of .0167 is met within 0.6% (one standard deviation), and a critical value within 0.2%.
_PATHS, _SEED = 2_000_000, 20260101


class Estimate(NamedTuple):
    """Mean of paired differences with its repeated confidence interval.

    Attributes:
        mean, low, high, spread: in the unit of the score; ``spread`` is the differences' standard deviation.
        seeds: pairs.
        p: of Student's paired t test, two-sided, for this look and this arm alone.
    """

    mean: float
    low: float
    high: float
    spread: float
    seeds: int
    p: float


@dataclass(frozen=True)
class Design:
    """The looks of a race with their critical values.

    Attributes:
        looks: numbers of seeds, rising.
        alpha: that all looks of one arm spend together.
        critical: of |t|, by look.
    """

    looks: tuple[int, ...]
    alpha: float
    critical: tuple[float, ...]

    @classmethod
    def of(cls, seeds: int, arms: int = 1, alpha: float = ALPHA) -> Design:
        """Return the design of a race.

        Args:
            seeds: at most. arms: compared with the baseline. alpha: of the whole race.
        """
        looks, share = looks_of(seeds), alpha / arms
        return cls(looks, share, critical_values(looks, share))

    def estimate(self, differences: Sequence[float]) -> Estimate:
        """Return the estimate of as many differences as one of the looks has."""
        return estimate(differences, self.critical[self.looks.index(len(differences))])

    def power(self, effect: float) -> float:
        """Return the probability that a true difference of ``effect`` standard deviations is found by the last look."""
        t_KP = _statistics(self.looks, effect, _PATHS // 10)
        return float((t_KP > np.array(self.critical)[:, None]).any(axis=0).mean())

    @functools.cached_property
    def detectable(self) -> float:
        """The difference, in standard deviations of paired differences, that is found with a probability of 80%."""
        from scipy.optimize import brentq

        # Of two seeds and many arms it is in the hundreds.
        top = 4.0
        while self.power(top) < 0.8:
            top *= 4
        return float(brentq(lambda effect: self.power(effect) - 0.8, 0.0, top, xtol=0.005))


def looks_of(seeds: int) -> tuple[int, ...]:
    """Return the looks of a race of at most so many seeds.

    Example:
        >>> looks_of(3), looks_of(6), looks_of(10)
        ((3,), (4, 6), (4, 6, 10))
    """
    return (*(look for look in LOOKS if look < seeds), seeds)


def word_of(found: Estimate, margin: float) -> Word:
    """Return the verdict: equivalent where the whole interval lies within the margin; lower is better."""
    if -margin < found.low and found.high < margin:
        return "equivalent"
    return "better" if found.high < 0 else "worse" if found.low > 0 else "undecided"


@functools.cache
def counts_p(left: int, base_left: int, seeds: int) -> float:
    """Return Boschloo's exact p, two-sided, of how many of ``seeds`` left the floor in an arm and in the baseline.

    Of so few seeds it finds what Fisher's, which takes the total for given, cannot (Boschloo 1970).

    Example:
        >>> round(counts_p(0, 4, 4), 4), round(counts_p(3, 4, 4), 2), counts_p(0, 0, 4)
        (0.0078, 0.73, 1.0)
    """
    if left == base_left:
        return 1.0
    # Here: it takes a second to load, and most races need no count.
    from scipy.stats import boschloo_exact

    return min(1.0, float(boschloo_exact([[left, base_left], [seeds - left, seeds - base_left]]).pvalue))


def word_of_counts(left: int, base_left: int, p: float, alpha: float) -> Word:
    """Return better or worse where the counts of seeds that left the floor differ by more than chance explains.

    Args:
        p: of :func:`counts_p`. alpha: of all looks, since a race ends at the look at which a seed is on the floor.
    """
    if p > alpha:
        return "undecided"
    return "better" if left > base_left else "worse"


def estimate(differences: Sequence[float], critical: float) -> Estimate:
    """Return mean, interval and p of at least two finite differences.

    Args:
        critical: value of |t| that bounds the interval.
    """
    from scipy.special import stdtr

    seeds = len(differences)
    mean, spread = float(np.mean(differences)), float(np.std(differences, ddof=1))
    half = critical * spread / math.sqrt(seeds)
    # Two recipes that are the same one: no spread, no difference, nothing that a test could say.
    p = 2 * float(stdtr(seeds - 1, -abs(mean) * math.sqrt(seeds) / spread)) if spread else float(mean == 0)
    return Estimate(mean, mean - half, mean + half, spread, seeds, p)


def more_seeds(found: Estimate, critical: float, margin: float) -> int | None:
    """Return how many more seeds would decide if mean and spread stayed; None for more than :data:`MOST_MORE`.

    Args:
        critical: of the look that the estimate is of; its level is kept.
    """
    from scipy.special import stdtr, stdtrit

    level = float(stdtr(found.seeds - 1, -critical))
    for more in range(1, MOST_MORE + 1):
        seeds = found.seeds + more
        half = -float(stdtrit(seeds - 1, level)) * found.spread / math.sqrt(seeds)
        if half < abs(found.mean) or half < margin - abs(found.mean):
            return more
    return None


@functools.lru_cache(maxsize=64)
def critical_values(looks: tuple[int, ...], alpha: float) -> tuple[float, ...]:
    """Return critical values of |t| that spend ``alpha`` in proportion to the seeds; all but the first simulated.

    Args:
        looks: numbers of seeds, rising, the first at least 2.
    """
    from scipy.special import stdtrit

    found = [-float(stdtrit(looks[0] - 1, alpha * looks[0] / looks[-1] / 2))]
    t_KP = _statistics(looks, 0.0, _PATHS) if len(looks) > 1 else np.empty((1, 0))
    left_P = t_KP[0] <= found[0]
    for t_P, before, look in zip(t_KP[1:], looks, looks[1:], strict=False):
        # Of all paths, also of those that ended before: the increment is no conditional probability.
        ending = max(1, round(alpha * (look - before) / looks[-1] * _PATHS))
        found.append(float(np.partition(t_P[left_P], -ending)[-ending]))
        left_P &= t_P <= found[-1]
    return tuple(found)


def _statistics(looks: tuple[int, ...], effect: float, paths: int) -> np.ndarray:
    """Return |t| at every look (K, P) of so many races with a true difference of ``effect`` standard deviations."""
    dice = np.random.default_rng(_SEED)
    t_KP = np.empty((len(looks), paths), np.float32)
    # Sum and sum of squares are all that t needs: of m new differences the sum is normal, and the squares around their
    # mean are chi-squared with m - 1 degrees of freedom.
    sum_P, squares_P, before = np.zeros(paths), np.zeros(paths), 0
    for k, look in enumerate(looks):
        new = look - before
        added_P = math.sqrt(new) * dice.standard_normal(paths) + new * effect
        squares_P += added_P**2 / new
        if new > 1:
            squares_P += dice.chisquare(new - 1, paths)
        sum_P += added_P
        within_P = (squares_P - sum_P**2 / look) / (look - 1)
        # Of two seeds and a large effect, differences may be equal to the last digit.
        with np.errstate(divide="ignore"):
            t_KP[k] = np.abs(sum_P) / np.sqrt(look * np.maximum(within_P, 0.0))
        before = look
    return t_KP
