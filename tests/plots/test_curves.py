"""Curves: axes, smoothing without lag, thinning that keeps spikes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from workbench.plots.curves import Curve, axes_of, curve, heldout_curve, smooth, thin, x_at_steps
from workbench.telemetry import Telemetry


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


def test_smooth_is_a_centred_mean_that_skips_nan():
    rng = np.random.default_rng(1)
    y = rng.standard_normal(101)
    y[40] = np.nan
    got = smooth(Curve(np.arange(101.0), y), share=0.1).y_N
    for i in range(101):  # half = 5, narrowing at the start, looking back at the end
        back = min(5, i)
        window = y[i - back : i + min(back, 100 - i) + 1]
        expected = np.nanmean(window) if np.isfinite(window).any() else np.nan
        np.testing.assert_allclose(got[i], expected, atol=1e-12)


def test_smooth_has_no_lag_on_a_line():
    line = Curve(np.arange(50.0), np.arange(50.0) * 2)
    half = 7
    np.testing.assert_allclose(smooth(line, 0.3).y_N[:-half], line.y_N[:-half])


def test_smooth_does_not_end_in_the_last_raw_value():
    y = np.ones(100)
    y[-1] = 2.0
    assert smooth(Curve(np.arange(100.0), y), 0.2).y_N[-1] == pytest.approx(1 + 1 / 11)


def test_thin_keeps_spikes_and_order():
    y = np.zeros(100_000)
    y[77_777], y[12_345] = 9.0, -9.0
    few = thin(Curve(np.arange(100_000.0), y), 500)
    assert len(few) <= 502
    assert few.y_N.max() == 9.0
    assert few.y_N.min() == -9.0
    assert (np.diff(few.x_N) > 0).all()
    all_nan = thin(Curve(np.arange(5000.0), np.full(5000, np.nan)), 100)
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
