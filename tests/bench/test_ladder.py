"""The ladder: what it searches, what it leaves out, and what it makes of the readings; no training here."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.bench.test_harness import printed
from workbench.base.errors import WorkbenchError
from workbench.bench import ladder
from workbench.bench.harness import run
from workbench.bench.ladder import DEFAULT, FINE, ROUGH, TUNED, Arm, Search, climb, fewest_steps, settled, summary
from workbench.bench.ladder_stage import Train
from workbench.bench.ladder_tracks import TRACKS, causal
from workbench.bench.presets import TUNING_SEED
from workbench.recipes.recipe import Recipe

BEST_RATE = 2e-3
# Nats that each arm lies below the default Trainer at equal steps, and seconds per step.
PROGRESS = {"default": (0.0, 0.4), "tuned": (0.0, 0.2), "ours": (0.0, 0.1), "better": (0.4, 0.1), "worse": (-0.4, 0.1)}


def trainer(arm: Arm) -> Train:
    """A world in which twice the steps give 0.5 nats, and one rate is best."""
    ahead, seconds = PROGRESS[arm.what.partition(":")[0]]

    def trained(recipe: Recipe) -> dict[str, Any]:
        steps = int(recipe.budget.amount)
        off = abs(math.log2(recipe.optimizer.lr / BEST_RATE)) / 10
        loss = 10 - 0.5 * math.log2(steps) - ahead + off + recipe.seed % 7 / 1000
        return {"loss": loss, "steps": steps, "cpu_seconds": steps * seconds}

    return each(trained)


def each(trained: Callable[[Recipe], dict[str, Any]]) -> Train:
    """Of several recipes."""
    return lambda recipes: [trained(recipe) for recipe in recipes]


def arms() -> list[Arm]:
    names = ((DEFAULT, "default"), (TUNED, "tuned"), ("our engine", "ours"))
    return [Arm(name, what, "", causal(256), {}) for name, what in names]


def test_the_fewest_steps_are_found_from_either_side() -> None:
    train = trainer(arms()[2])
    for start in (20, 200, 4000):
        recipe, run = fewest_steps(train, causal(600), 6.0, start) or pytest.fail("not found")
        assert 6.0 - FINE.band <= run["loss"] <= 6.0
        assert recipe.budget.amount == run["steps"]


def test_a_rough_search_takes_fewer_runs() -> None:
    def trained(search: Search) -> list[float]:
        train, losses = trainer(arms()[2]), list[float]()

        def noted(recipe: Recipe) -> dict[str, Any]:
            (run,) = train([recipe])
            losses.append(run["loss"])
            return run

        assert fewest_steps(each(noted), causal(600), 6.0, 340, search)
        return losses

    fine, rough = trained(FINE), trained(ROUGH)
    assert len(rough) < len(fine)
    assert 6.0 - ROUGH.band <= rough[-1] <= 6.0


def test_the_workshops_ladder_compiles_nothing_on_either_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arms: list[ladder.Arm] = []

    def climb(given: list[ladder.Arm], *_: object) -> None:
        arms.extend(given)
        raise WorkbenchError("that is all")

    monkeypatch.setattr(ladder, "climb", climb)
    monkeypatch.setattr(ladder.Stage, "train", lambda *_: [])
    for options in ([], ["--track", "workshop"]):
        with pytest.raises(WorkbenchError, match="that is all"):
            run("ladder", [*options, "--out", str(tmp_path / "ladder.json")])
    assert [arm.recipe.execution.compile for arm in arms] == [True] * 3 + [False] * 3
    assert [arm.setting.get("eager") for arm in arms] == [False, False, None, True, True, None]


@pytest.mark.parametrize("loss", [None, 7.0])
def test_a_score_out_of_reach_is_given_up(loss: float | None) -> None:
    tried: list[int] = []

    def train(recipe: Recipe) -> dict[str, Any]:
        tried.append(int(recipe.budget.amount))
        return {"loss": loss, "steps": tried[-1], "cpu_seconds": 1.0}

    assert fewest_steps(each(train), causal(600), 6.0, 100) is None
    assert len(tried) == FINE.tries
    assert tried == sorted(tried)
    with pytest.raises(WorkbenchError, match="does not reach"):
        climb(arms(), [], lambda arm: trainer(arm) if arm.what == "default" else each(train))


def test_only_what_pays_stays_and_every_arm_is_tuned() -> None:
    candidates = [("worse: a", {"depth": "stacking"}), ("better: b", {"data.batch_size": 16})]
    found = climb(arms(), candidates, trainer)
    assert [arm.what for arm in found["arms"]] == ["default", "tuned", "ours", "better: b"]
    assert {arm.recipe.optimizer.lr for arm in found["arms"]} == {BEST_RATE}
    by_seed = statistics.fmean(seed % 7 / 1000 for seed in ladder.PILOT_SEEDS)
    assert found["target"] == pytest.approx(10 - 0.5 * 8 + by_seed), "no seed's luck"
    (left,) = found["left_out"]
    assert left["what"] == "worse: a"
    assert left["seconds"] > left["to_beat"]
    assert found["arms"][-1].recipe.depth.kind == "full", "what was left out is in no later rung"
    assert found["arms"][-1].recipe.data.most_rows == 16


def test_one_busy_moment_decides_about_no_rung() -> None:
    def busy(arm: Arm) -> Train:
        def trained(recipe: Recipe) -> dict[str, Any]:
            (run,) = trainer(arm)([recipe])
            there = 0 <= 6.003 - run["loss"] <= FINE.band and recipe.optimizer.schedule.warmup == 0.1
            return {**run, "cpu_seconds": run["cpu_seconds"] * (10 if there and arm.what == "better: b" else 1)}

        return each(trained)

    assert climb(arms(), [("better: b", {"data.batch_size": 16})], busy)["left_out"] == []


def test_an_arm_begins_with_what_the_one_before_it_came_to() -> None:
    tried: dict[str, list[float]] = {"default": [], "tuned": [], "ours": []}

    def noting(arm: Arm) -> Train:
        def trained(recipe: Recipe) -> dict[str, Any]:
            tried[arm.what].append(recipe.optimizer.lr)
            return trainer(arm)([recipe])[0]

        return each(trained)

    climb(arms(), [], noting)
    assert tried["default"][0] != BEST_RATE
    assert [tried[what][0] for what in ("tuned", "ours")] == [BEST_RATE, BEST_RATE]


def test_steps_are_settled_by_the_mean_of_the_pilot_seeds() -> None:
    """One of three stays on the plateau until there are steps enough."""
    arm = arms()[2]

    def train(recipe: Recipe) -> dict[str, Any]:
        steps = recipe.budget.amount
        return {"loss": 9.0 if recipe.seed == TUNING_SEED + 1 and steps < 280 else 5.9}

    assert settled(arm, 6.0, each(train)).recipe.budget.amount == 282  # 256, 269, 282
    assert settled(arm, 5.0, each(train)) == arm


def test_untuned_arms_keep_their_rate() -> None:
    found = climb(arms(), [("better: b", {"data.batch_size": 16})], trainer, tune=False)
    start = causal(256)
    assert {arm.recipe.optimizer for arm in found["arms"]} == {start.optimizer}
    assert found["target"] == trainer(arms()[0])([start])[0]["loss"]
    assert [arm.what for arm in found["arms"]] == ["default", "tuned", "ours", "better: b"]


def test_a_file_is_shown_without_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    three, path = arms(), tmp_path / "ladder.json"
    runs = {arm.name: [{"loss": 6.0, "cpu_seconds": 10.0 - at}] for at, arm in enumerate(three)}
    whole = {"benchmark": "ladder", "target": 6.0, "unigram_entropy": 6.9, **summary(three, runs, 6.0)}
    path.write_text(json.dumps(whole))
    assert run("ladder", ["--show", "--out", str(path)]) == 0
    assert "word frequencies: 6.900" in capsys.readouterr().out
    path.write_text('{"benchmark": "ladder"}')
    with pytest.raises(WorkbenchError, match="no ladder that has ended"):
        run("ladder", ["--show", "--out", str(path)])


def test_the_factors_are_by_seed_and_a_score_not_reached_is_said() -> None:
    three = arms()
    seconds = {DEFAULT: [100.0, 110.0], TUNED: [50.0, 50.0], "our engine": [10.0, 11.0]}
    losses = {DEFAULT: [6.0, 6.0], TUNED: [5.99, 6.01], "our engine": [6.1, 6.0]}
    runs = {
        name: [{"loss": loss, "cpu_seconds": each} for loss, each in zip(losses[name], seconds[name], strict=True)]
        for name in seconds
    }
    found = summary(three, runs, 6.0)
    ours = found["by_arm"]["our engine"]
    assert ours["times_faster_than_default"] == {"median": 10.0, "min": 10.0, "max": 10.0}
    assert not ours["reached"]
    assert found["by_arm"][TUNED]["reached"]
    low, high = ours["above_target_interval"]
    assert low < 0.05 < high
    assert found["waterfall"]["whole"] == pytest.approx(105 / 10.5)
    result = {"target": 6.0, "unigram_entropy": 6.3, **found}
    verdicts = ladder.shown(result)["verdicts"]
    assert [each["met"] for each in verdicts] == [False, True, True, False], "0.3 nats below word frequencies are few"
    assert "our engine: above the score" in printed("ladder", {**result, "verdicts": verdicts})


@pytest.mark.parametrize("name", TRACKS)
def test_rungs_can_be_climbed_one_on_the_other(name: str) -> None:
    track = TRACKS[name]
    recipe = track.base(100)
    if name == "bert_base":
        # What else it says can be checked where there is no GPU, too.
        recipe = recipe.with_(execution={"device": "cpu"})
    assert recipe.seed == TUNING_SEED
    for _, changes in track.rungs:
        recipe = recipe.with_(**changes)
        recipe.check_whole()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--at-once", "0"], r"--at-once: .* use 1\.\.\d+, got 0"),
        (["--at-once", "10000"], r"--at-once: .* use 1\.\.\d+, got 10000"),
        (["--seeds", "0"], "1 fresh seed or more, got 0"),
        (["--set", "architecture.layers=2"], r"rung 'depth: MSLT, .*' cannot be tried .* 2 layers do not split into"),
        pytest.param(["--gpu"], "cuda", marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")),
    ],
)
def test_what_cannot_be_climbed_is_refused_before_anything_is_trained(
    options: list[str], words: str, tmp_path: Path
) -> None:
    with pytest.raises(WorkbenchError, match=words):
        run("ladder", [*options, "--out", str(tmp_path / "ladder.json")])
    assert list(tmp_path.iterdir()) == []
