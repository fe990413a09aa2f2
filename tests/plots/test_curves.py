"""Curves: axes, smoothing without lag, downsampling that keeps spikes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from workbench.plots.curves import Curve, axes_of, curve, downsample, heldout_curve, heldout_scores, smooth, x_at_steps
from workbench.telemetry.streams import Telemetry


def test_curve_over_each_axis(view):
    steps, tokens, seconds = (curve(view, "loss", x) for x in ("step", "tokens", "seconds"))
    assert len(steps) == len(tokens) == len(seconds) == 200
    np.testing.assert_allclose(tokens.x_N, steps.x_N * 4096)
    np.testing.assert_allclose(seconds.x_N, tokens.x_N / 8000, atol=1e-4)
    assert len(curve(view, "no such scalar")) == 0


def test_unknown_axis_names_the_legal_ones(view):
    with pytest.raises(ValueError, match=r"'sceonds'; did you mean 'seconds'\? legal: flops, seconds, step, tokens"):
        curve(view, "loss", "sceonds")


def test_heldout_from_evaluations(view, empty):
    assert heldout_curve(view).x_N.tolist() == [50, 100, 150, 200]
    assert len(heldout_curve(empty)) == 0


def _written_out(x: np.ndarray, y: np.ndarray, share: float) -> list[float]:
    """The weighted mean of each point, sample by sample."""
    width = share * (x[-1] - x[0])
    out = []
    for i in range(len(x)):
        sides = []
        for side in (range(i), range(i + 1, len(x))):
            weights = {k: np.exp(-abs(x[i] - x[k]) / width) for k in side if np.isfinite(y[k])}
            sides.append((sum(w * y[k] for k, w in weights.items()), sum(weights.values())))
        (before, before_weight), (after, after_weight) = sides
        part = before_weight / after_weight if after_weight > before_weight else 1.0
        own = float(np.isfinite(y[i]))
        total = (y[i] if own else 0.0) + before + part * after
        out.append(total / (own + before_weight + part * after_weight))
    return out


@pytest.mark.parametrize("share", [0.001, 0.012, 0.3])
def test_smooth_equals_the_written_out_weighted_mean(share):
    rng = np.random.default_rng(1)
    x, y = np.cumsum(rng.integers(1, 9, 101)).astype(float), rng.standard_normal(101)
    y[40], y[7] = np.nan, np.inf
    got = smooth(Curve(x, y), share)
    np.testing.assert_allclose(got.y_N, _written_out(x, y, share), rtol=1e-9)


def test_smooth_goes_by_steps_on_every_axis(view):
    over_steps, over_seconds = (smooth(curve(view, "loss", x)) for x in ("step", "seconds"))
    np.testing.assert_allclose(over_seconds.y_N, over_steps.y_N)
    np.testing.assert_array_equal(downsample(over_seconds, 20).steps_N[[0, -1]], over_steps.x_N[[0, -1]])


def test_smooth_has_no_lag_on_a_line_and_does_not_end_in_the_last_raw_value():
    line = Curve(np.arange(400.0), 10 - np.arange(400.0) / 50)
    np.testing.assert_allclose(smooth(line, 0.02).y_N[60:340], line.y_N[60:340], atol=1e-3)
    y = np.ones(100)
    y[-1] = 2.0
    assert 1 < smooth(Curve(np.arange(100.0), y), 0.2).y_N[-1] < 1.1
    assert smooth(Curve(np.arange(3.0), np.ones(3)), 0).y_N.tolist() == [1, 1, 1]
    assert len(smooth(Curve(np.empty(0), np.empty(0)))) == 0


def test_a_rate_is_smoothed_over_the_time_that_it_stands_for():
    # Half of the steps at 100 tokens/s, half at 50: together 66.7, not 75.
    line = Curve(np.arange(1000.0), np.where(np.arange(1000) % 2, 100.0, 50.0))
    assert smooth(line, 0.1, rate=True).y_N[500] == pytest.approx(200 / 3, rel=1e-3)


def test_thin_keeps_spikes_and_order():
    y = np.zeros(100_000)
    y[77_777], y[12_345] = 9.0, -9.0
    few = downsample(Curve(np.arange(100_000.0), y), 500)
    assert len(few) <= 502
    assert few.y_N.max() == 9.0
    assert few.y_N.min() == -9.0
    assert (np.diff(few.x_N) > 0).all()
    all_nan = downsample(Curve(np.arange(5000.0), np.full(5000, np.nan)), 100)
    assert np.isnan(all_nan.y_N).all()


def test_steps_found_on_other_axes(view, empty):
    np.testing.assert_allclose(x_at_steps(view, [0, 50, 100.5], "tokens"), [0, 50 * 4096, 100.5 * 4096])
    np.testing.assert_allclose(x_at_steps(empty, [3], "step"), [3])
    np.testing.assert_allclose(x_at_steps(empty, [3], "seconds"), [0])


def test_flops_are_an_axis_where_they_were_recorded(view):
    assert "flops" not in axes_of([view])
    assert len(curve(view, "loss", "flops")) == 0
    told = [record | ({"flops": 1e9 * record["step"]} if "loss" in record else {}) for record in view.telemetry.scalars]
    view = dataclasses.replace(view, telemetry=Telemetry(told))
    assert list(axes_of([view])) == ["step", "tokens", "seconds", "flops"]
    steps, flops = curve(view, "loss"), curve(view, "loss", "flops")
    np.testing.assert_allclose(flops.x_N, 1e9 * steps.x_N)
    np.testing.assert_allclose(heldout_curve(view, "flops").x_N, 1e9 * heldout_curve(view).x_N)


def test_held_out_scores_are_one_curve_to_the_last_which_is_told_apart(view, empty):
    going = dataclasses.replace(view, status="running")
    ends = [[line.x_N.tolist() for line in heldout_scores(each)] for each in (view, going)]
    assert ends == [[[50, 100, 150, 200], [200]], [[50, 100, 150, 200], []]]
    assert [len(line) for line in heldout_scores(view, "flops")] == [0, 0], "nothing recorded"
    assert [len(line) for line in heldout_scores(empty)] == [0, 0]
    unmeasured = [*view.evaluations["heldout"][:-1], {"step": 200, "loss": None}]
    diverged = dataclasses.replace(view, evaluations=view.evaluations | {"heldout": unmeasured})
    assert [len(line) for line in heldout_scores(diverged)] == [3, 0], "none of a part takes its place"
