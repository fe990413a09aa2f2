"""Speed-ups, and seconds to the baseline's final score: of curves whose answer is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from workbench.experiments.race.sequential import estimate
from workbench.experiments.race.speedup import crossing, seconds_to_target, speedup

SEEDS = 6
# A nat per doubling of the budget, seeds apart.
LEVELS_S = np.linspace(-0.1, 0.1, SEEDS)
BASELINE = {ratio: (5.0 - math.log2(ratio) + LEVELS_S).tolist() for ratio in (0.5, 1, 2)}


def test_a_known_ratio_is_found() -> None:
    noise_S = np.array([0.1, -0.1, 0.1, -0.1, 0.1, -0.1])
    arm_S = 5.0 - math.log2(1.5) + LEVELS_S + noise_S
    found = speedup(arm_S.tolist(), BASELINE, 2.57)
    assert found is not None
    assert found.factor == pytest.approx(1.5)
    # One nat a doubling: the interval of the difference, in doublings.
    gap = estimate((arm_S - np.array(BASELINE[1])).tolist(), 2.57)
    assert (found.low, found.high) == pytest.approx((2**-gap.high, 2**-gap.low))
    assert found.text == "1.5x (1.4x to 1.6x)"


def test_nothing_is_extrapolated() -> None:
    def text(nats: float) -> str:
        found = speedup((5.0 - nats + LEVELS_S + [0.1, -0.1] * 3).tolist(), BASELINE, 2.57)
        assert found is not None
        return found.text

    assert text(3.0) == "> 2x"
    assert text(-3.0) == "< 0.5x"
    assert text(0.95).endswith("to > 2x)")
    assert text(-0.95).startswith("0.52x (< 0.5x to")


def test_one_budget_says_nothing() -> None:
    assert speedup([5.0] * SEEDS, {1: BASELINE[1]}, 2.57) is None


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    """Curves with noise in every run: 95% of the intervals hold the true ratio."""
    dice, critical, held = np.random.default_rng(0), float(scipy.stats.t.ppf(0.975, SEEDS - 1)), 0
    for _ in range(400):
        level_S = dice.normal(0, 0.05, SEEDS)
        runs = {r: (5 - 0.3 * math.log2(r) + level_S + dice.normal(0, 0.03, SEEDS)).tolist() for r in (0.5, 1, 2)}
        arm_S = 5 - 0.3 * math.log2(1.3) + level_S + dice.normal(0, 0.03, SEEDS)
        found = speedup(arm_S.tolist(), runs, critical)
        assert found is not None
        held += (found.low or 0.0) <= 1.3 <= (found.high or math.inf)
    assert held / 400 == pytest.approx(0.95, abs=0.035)


def test_against_a_baseline_that_hardly_gains_from_its_budget_neither() -> None:
    """Its curve wavers, and the noise is less between two of its budgets: the ends pass 0 several times."""
    dice = np.random.default_rng(0)
    for _ in range(500):
        level_S = dice.normal(0, 0.02, SEEDS)
        runs = {r: (5 - 0.01 * math.log2(r) + level_S + dice.normal(0, 0.03, SEEDS)).tolist() for r in (0.5, 1, 2)}
        arm_S = 4.99 + level_S + dice.normal(0, 0.03, SEEDS)
        gap, found = estimate((arm_S - np.array(runs[1])).tolist(), 2.57), speedup(arm_S.tolist(), runs, 2.57)
        assert found is not None
        _, low, high = found.shown
        ahead = low.startswith(">") or (found.low is not None and found.low > 1)
        behind = high.startswith("<") or (found.high is not None and found.high < 1)
        assert ahead <= (gap.high < 0)
        assert behind <= (gap.low > 0)


# Falls by a nat in every ten seconds.
CURVE = [(10.0, 4.0), (20.0, 3.0), (30.0, 2.0)]


def test_a_curve_is_read_between_its_points() -> None:
    assert crossing(CURVE, 2.5) == pytest.approx(25)
    assert crossing(CURVE, 2.0) == pytest.approx(30)
    assert crossing(CURVE, 4.5) == 10, "nothing is known before the first point"
    assert crossing(CURVE, 1.9) is None
    # A curve that wavers: when it was there first.
    assert crossing([*CURVE, (40.0, 3.5), (50.0, 1.0)], 2.5) == pytest.approx(25)


def test_mean_and_interval_are_of_logarithms() -> None:
    found = seconds_to_target([CURVE] * 3, [3.0, 2.5, 2.0], 60.0, 4.3)
    log_S = np.log([20, 25, 30])
    half = 4.3 * log_S.std(ddof=1) / math.sqrt(3)
    assert found.seconds == pytest.approx((20 * 25 * 30) ** (1 / 3))
    assert (found.low, found.high) == pytest.approx((math.exp(log_S.mean() - half), math.exp(log_S.mean() + half)))
    assert (found.reached, found.seeds) == (3, 3)
    assert (found.text, found.baseline) == ("25 s (15 s to 41 s)", 60.0)


def test_a_seed_that_never_gets_there_is_counted_and_never_left_out_of_a_mean() -> None:
    assert seconds_to_target([CURVE] * 2, [3.0, 1.0], 60.0, 4.3).text == "reached by 1 of 2 seeds"
    none = seconds_to_target([CURVE] * 2, [1.0, 1.0], 0.5, 4.3)
    assert (none.seconds, none.text) == (None, "reached by none of 2 seeds")
