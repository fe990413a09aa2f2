"""Samplers: the same points for the same seed, none twice, and Optuna's told all that has ended."""

from __future__ import annotations

import math
import sys

import pytest

from workbench.base.errors import RecipeError, WorkbenchError
from workbench.experiments.sweep.samplers import Trial, check_sampler, draw, grid, propose
from workbench.experiments.sweep.space import Knob, Values

RANGES = {"lr": Knob(low=1e-4, high=1e-2, log=True), "layers": Knob(low=1, high=8, whole=True),
          "kind": Knob(values=("a", "b"))}  # fmt: skip


def test_a_grid_has_all_combinations_the_last_knob_fastest() -> None:
    space = {"x": Knob(values=(1, 2)), "y": Knob(values=("a", "b"))}
    assert grid(space) == [{"x": 1, "y": "a"}, {"x": 1, "y": "b"}, {"x": 2, "y": "a"}, {"x": 2, "y": "b"}]


def test_random_points_follow_from_seed_and_number() -> None:
    points = [draw(RANGES, 3, index, 0) for index in range(200)]
    assert points == [draw(RANGES, 3, index, 0) for index in range(200)]
    assert points[:3] != [draw(RANGES, 4, index, 0) for index in range(3)]
    assert all(1e-4 <= point["lr"] <= 1e-2 and point["layers"] in range(1, 9) for point in points)
    # Evenly in the logarithm: the middle of the range is its geometric mean.
    assert 70 < sum(point["lr"] < 1e-3 for point in points) < 130
    assert {point["kind"] for point in points} == {"a", "b"}


def score(drawn: Values) -> float:
    return abs(math.log(drawn["lr"] / 1e-3)) + abs(drawn["layers"] - 6) / 4 + (drawn["kind"] == "b")


def sequence(sampler: str, runs: int, seed: int = 0) -> list[Trial]:
    trials: list[Trial] = []
    for _ in range(runs):
        drawn = propose(RANGES, sampler, seed, runs, trials, 0)
        trials.append(Trial(drawn, "done", score(drawn)))
    return trials


def test_tpe_repeats_itself_and_learns() -> None:
    trials = sequence("tpe", 30)
    assert sequence("tpe", 30) == trials
    scores = [score(trial.drawn) for trial in trials]
    assert sum(scores[20:]) < 0.75 * sum(scores[:10])
    # What trains and what failed has no score, and takes part.
    begun = [*trials[:12], Trial(trials[12].drawn, "going", None), Trial(trials[13].drawn, "failed", None)]
    assert propose(RANGES, "tpe", 0, 30, begun, 0).keys() == RANGES.keys()
    # A list of values that are no plain ones, as schedules are.
    shapes = {"shape": Knob(values=({"kind": "linear"}, {"kind": "cosine"}))}
    assert propose(shapes, "tpe", 0, 5, [Trial({"shape": {"kind": "linear"}}, "done", 1.0)], 0)["shape"]["kind"]


@pytest.mark.extended
def test_gp_repeats_itself_and_comes_closer_than_chance() -> None:
    trials = sequence("gp", 12)
    assert sequence("gp", 12) == trials
    scores = [score(trial.drawn) for trial in trials]
    by_chance = min(score(draw(RANGES, 0, index, 0)) for index in range(12))
    assert min(scores[4:]) < min(by_chance, *scores[:4]) / 2, "after four at random, it proposes"


def test_what_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = {"x": Knob(values=(1, 2, 3))}
    assert check_sampler("grid", listed, None) == 3
    assert check_sampler("random", RANGES, 7) == 7
    for sampler, space, runs, said in (
        ("gird", listed, None, "did you mean 'grid'"),
        ("grid", RANGES, None, "lr: a grid needs a list"),
        ("grid", listed, 2, "this grid has 3 points, got 2"),
        ("random", listed, None, "say how many points"),
        ("tpe", listed, 0, "1 to 1,000 points"),
    ):
        with pytest.raises(RecipeError, match=said):
            check_sampler(sampler, space, runs)
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(WorkbenchError, match=r"pip install 'workbench\[sweep\]'`, or take the sampler 'random'"):
        check_sampler("tpe", listed, 3)
