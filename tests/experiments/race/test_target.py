"""Seconds to the baseline's final score: of curves whose answer is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from workbench.experiments.race.speedup import crossing, seconds_to_target

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
    assert found.against == "25 s (15 s to 41 s); the baseline takes 60 s"


def test_a_seed_that_never_gets_there_is_counted_and_never_left_out_of_a_mean() -> None:
    assert seconds_to_target([CURVE] * 2, [3.0, 1.0], 60.0, 4.3).text == "reached by 1 of 2 seeds"
    none = seconds_to_target([CURVE] * 2, [1.0, 1.0], 0.5, 4.3)
    assert (none.seconds, none.text) == (None, "reached by none of 2 seeds")
    assert none.against == "reached by none of 2 seeds; the baseline takes 0.5 s"
