"""Importance: exact on a whole grid, and nothing where nothing can be said."""

from __future__ import annotations

import itertools
import math

import pytest

from workbench.experiments.sweep.importance import caveat, importance


def test_on_a_grid_main_effects_and_the_rest_add_up_to_one() -> None:
    points = [{"a": a, "b": b, "c": c} for a, b, c in itertools.product((0, 1), repeat=3)]
    found = importance(points, [4 * point["a"] + 2 * point["b"] + point["c"] for point in points], [])
    # Ranks are 1 to 8, of variance 42: 32 between the values of a, 8 of b, 2 of c.
    assert found == {"a": pytest.approx(32 / 42), "b": pytest.approx(8 / 42), "c": pytest.approx(2 / 42)}
    both = importance(points, [abs(point["a"] - point["b"]) for point in points], [])
    assert both == {"a": 0, "b": 0, "c": 0}, "interplay is nobody's alone"


def test_ranges_are_cut_into_neighbours_and_one_that_diverged_counts_as_the_worst() -> None:
    points = [{"x": index / 12, "y": index % 2} for index in range(12)]
    found = importance(points, [*range(11), math.nan], ["x"])
    assert list(found) == ["x", "y"]
    assert found["x"] > 0.9


def test_ranges_of_few_points_do_not_explain_everything() -> None:
    points = [{"x": x, "y": y} for x, y in ((0.1, 0.2), (0.2, 0.9), (0.8, 0.1), (0.9, 0.8))]
    assert importance(points, [1, 2, 3, 4], ["x", "y"]) == {"x": pytest.approx(0.8), "y": pytest.approx(0.2)}


def test_knobs_that_some_points_do_not_have() -> None:
    points = [{"kind": "full"}, {"kind": "full"}, {"kind": "drop", "theta": 0.3}, {"kind": "drop", "theta": 0.5}]
    found = importance(points, [1, 2, 3, 4], [])
    assert found["theta"] >= found["kind"] > 0.7


def test_what_shares_leave_out_is_said_and_that_few_points_say_little() -> None:
    assert caveat({"a": 0.9, "b": 0.8}, 20) == "Shares overlap, as knobs changed together."
    assert caveat({"a": 0.1, "b": 0.1}, 10).count("\n") == 0
    assert caveat({"a": 0.1, "b": 0.1, "c": 0.1}, 11).endswith("Only 11 points: shares of fewer than 12 say little.")
    assert caveat({}, 2) == ""


def test_too_little_says_nothing() -> None:
    assert importance([{"a": 1, "b": 2}] * 3, [1, 2, 3], []) == {}
    assert importance([{"a": index, "b": 2} for index in range(4)], [1, 1, 1, 1], []) == {}
    assert importance([{"a": index} for index in range(4)], [1, 2, 3, 4], []) == {}, "one knob explains everything"
