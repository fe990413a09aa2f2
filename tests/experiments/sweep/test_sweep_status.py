"""How a sweep stands: the best and who is not told apart from it, the spread over seeds, what a reader is told."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from statistics import fmean, stdev

import numpy as np
import pytest

from tests.experiments.sweep.conftest import Planned, Starter, finish, held, loss
from workbench.experiments.sweep.sweep_status import expected_extreme, losses_at_rungs, pooled_spread, status_of
from workbench.store.folder import RunFolder, write_json


def test_spread_is_pooled_within_points() -> None:
    assert pooled_spread([[1.0, 3.0], [5.0, 7.0], [2.0, 2.0]]) == pytest.approx(math.sqrt(4 / 3))
    assert pooled_spread([[1.0, 2.0, 4.0]], fewest=1) == pytest.approx(stdev([1, 2, 4]))
    assert math.isnan(pooled_spread([[1.0], [2.0]]))
    assert math.isnan(pooled_spread([[1.0, 2.0]]))


def test_luck_of_the_best_as_by_drawing() -> None:
    draws = np.random.default_rng(0).standard_normal((200_000, 7)).max(axis=1).mean()
    assert expected_extreme(7) == pytest.approx(draws, abs=0.01)
    assert expected_extreme(1) == 0.0


def test_the_best_is_said_to_be_chosen_on_its_own_score(planned: Planned) -> None:
    sweep = held(planned(seeds=3))
    now, text = sweep.look(), sweep.summary
    assert now.best == sweep.best == 3
    assert now.points[3].score == pytest.approx(fmean(loss({"architecture.layers": 2}, s) for s in (1000, 1001, 1002)))
    assert now.spread == pytest.approx(0.01)
    assert now.luck == pytest.approx(0.01 / math.sqrt(3) * expected_extreme(6))
    assert now.close == []
    assert "best of 6: point 3 (lr=0.002, layers=2) at 1.910 nats, mean of 3 seeds" in text
    assert "chosen on its own score, which flatters it: race it on fresh seeds" in text
    assert "would look 0.007 better than it is" in text
    assert "as good as the best within twice the standard error: no other point" in text
    assert "edge" not in text


def test_points_that_noise_hides_are_named(planned: Planned) -> None:
    seeds, noise = iter(itertools.cycle((0.0, 0.4, 0.1))), {}

    def noisy(values: dict[str, float], seed: int) -> float:
        return noise.setdefault((*values.values(), seed), 2.0 + 0.1 * values["architecture.layers"] + next(seeds))

    now = held(planned({"architecture.layers": [1, 2]}, seeds=3), Starter(noisy)).look()
    assert (now.best, now.close) == (0, [1])


def test_one_seed_says_that_luck_is_not_known_and_an_edge_is_named(planned: Planned) -> None:
    text = held(planned({"optimizer.lr": [1e-3, 5e-4, 25e-5]})).summary
    assert "one seed each: how much of the differences is luck is not known" in text
    assert "at the edge of what was tried: optimizer.lr=0.001; the best may lie outside" in text


def test_points_on_the_floor_are_not_praised(planned: Planned) -> None:
    sweep = held(planned(), Starter(lambda values, seed: 2.95))
    # Behind how far it is and the best point: what pages show first.
    assert "6 of 6 points learned nothing beyond word frequencies." in sweep.shown().lines[2]
    assert sweep.brief.endswith(", nothing learned beyond word frequencies")
    assert sweep.table.count("nothing learned") == 6


def test_points_that_stayed_on_the_floor_are_counted_and_marked(planned: Planned) -> None:
    sweep = held(planned(seeds=2), Starter(lambda values, seed: 2.95 if values["optimizer.lr"] == 4e-3 else 2.0))
    assert "2 of 6 points learned nothing beyond word frequencies." in sweep.summary
    assert sweep.table.count("nothing learned") == 2
    assert "word frequencies" not in sweep.brief


def test_a_point_that_diverged_is_never_the_best(planned: Planned) -> None:
    sweep = held(planned(), Starter(lambda values, seed: math.nan if values["optimizer.lr"] == 2e-3 else 2.5))
    assert sweep.best == 0
    assert sweep.rows[2]["score"] is None


def test_points_before_they_begin(planned: Planned) -> None:
    plan, points = planned(seeds=2)
    now = status_of(plan, points, {}, {})
    assert [each.status for each in now.points] == ["waiting"] * 6
    assert [(point.index, seed) for point, seed in now.wanted[:7]] == [(i, 1000) for i in range(6)] + [(0, 1001)]
    adaptive = replace(plan, sampler="tpe")
    assert [(p.index, seed) for p, seed in status_of(adaptive, points, {}, {}).wanted[:2]] == [(0, 1000), (0, 1001)]
    finish(plan.run_folder((points[0], 1000)), 2.5)
    now = status_of(plan, points, {plan.run_folder((points[1], 1000)).id: "no engine"}, {})
    assert [each.status for each in now.points[:3]] == ["going", "failed", "waiting"]
    assert (now.best, now.points[0].score, now.points[0].progress) == (None, 2.5, 0.5)


def test_losses_at_rungs_in_any_unit(tmp_path: object, root: object, planned: Planned) -> None:
    plan, points = planned()
    folder: RunFolder = plan.run_folder((points[0], 1000))
    folder.path.mkdir(parents=True)
    assert losses_at_rungs(folder) == {}
    write_json(folder.recipe, {"budget": {"amount": 8.0, "unit": "seconds"}})
    write_json(folder.evaluations, {"heldout": [
        {"seconds": 1.0, "loss": 6.0}, {"seconds": 2.1, "loss": 5.0}, {"seconds": 3.0, "loss": 4.0}, 3,
        {"seconds": 4.02, "loss": None}]})  # fmt: skip
    found = losses_at_rungs(folder)
    assert found[0.25] == 5.0
    assert math.isnan(found[0.5])
