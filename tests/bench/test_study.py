"""The study with real child processes: a quick one that answers by rule, and once the real trainer."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from workbench import presets
from workbench.bench import study as study_module
from workbench.bench.arms import BASELINE, Arm, StudySet
from workbench.bench.study import Study, best_factor
from workbench.bench.study_results import StudyResults

# Loss falls towards lr 4e-3, with 0.1 off for depth; answers at once, or after a while where a kill is to hit it.
QUICK = """
import json, math, os, sys, time
from workbench.bench.contender import Stage
from workbench.runs.state import die_with_parent
stage = Stage()
die_with_parent()
stage.say({"ready": {"unigram_entropy": 6.5}})
while (message := stage.next()) is not None:
    recipe = message["recipe"]
    time.sleep(float(os.environ.get("QUICK_SECONDS", "0")))
    if recipe["optimizer"]["kind"] == "lans":
        sys.exit("no such kernel")
    loss = 5 + abs(math.log2(recipe["optimizer"]["lr"] / 4e-3)) + 0.01 * recipe["seed"]
    loss -= 0.1 * (recipe["depth"]["kind"] != "full")
    diverged = {"diverged": "the loss became nan"} if recipe["optimizer"]["lr"] > 0.02 else {}
    stage.say({"loss": None if diverged else loss, "steps": 7, "tokens": 70, "wall_seconds": 0.0, **diverged})
"""
ARMS = (
    Arm(BASELINE, "Baseline", {}, tuned=True),
    Arm("lans", "Optimizer", {"optimizer": {"kind": "lans", "lr": 0.01}}, tuned=True, costs_as=BASELINE),
    Arm("dropped", "Depth", {"depth": "progressive_drop"}),
    Arm("later", "Depth", {"depth": "hyper_drop"}),
    Arm("fixed", "Large", {"data.batch_size": 8}, tokens=4096, unit="tokens", seeds=1),
)
CALIBRATION = {
    "date": "2026-01-01", "baseline_seconds_per_step": [0.05], "arms": {"dropped": {"ratio": 0.8, "token_ratio": 0.8}},
}  # fmt: skip


def tiny(seeds: int = 2) -> StudySet:
    return StudySet(
        "tiny", lambda: presets.fast().with_(execution={"threads": 1, "device": "cpu"}), 100, 0.5, seeds, ARMS
    )


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "quick_worker.py").write_text(QUICK, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(study_module, "WORKER", "quick_worker")
    return "quick_worker"


def ready(path: Path) -> StudyResults:
    results = StudyResults(path)
    results.put(calibration=CALIBRATION)
    return results


def test_steps_follow_reference_time(tmp_path: Path) -> None:
    study = Study(tiny(), ready(tmp_path / "s.json"))
    by_name = {arm.name: arm for arm in study.arms}
    assert study.budget(by_name[BASELINE]) == {"unit": "steps", "amount": 100}
    assert study.budget(by_name["dropped"]) == {"unit": "steps", "amount": 125}, "a fifth cheaper: a quarter more steps"
    assert study.budget(by_name["dropped"], 0.5)["amount"] == 62
    assert study.budget(by_name["lans"])["amount"] == 100, "taken to cost what the baseline costs"
    assert study.budget(by_name["fixed"]) == {"unit": "tokens", "amount": 4096}
    task = study.final(by_name["dropped"], 3e-3, 2)
    assert (task.recipe.budget.amount, task.recipe.seed, task.recipe.depth.kind) == (125, 2, "progressive_drop")
    assert list(study.missing) == ["later"]
    assert study.uncalibrated() == {}


def test_only_brings_along_what_it_is_compared_with(tmp_path: Path) -> None:
    names = [arm.name for arm in Study(tiny(), ready(tmp_path / "s.json"), only=["Depth"]).arms]
    assert names == [BASELINE, "dropped"]


@pytest.mark.parametrize(
    ("optimum", "found", "tried"), [(1.0, 1.0, 3), (2.0, 2.0, 4), (0.5, 0.5, 4), (8.0, 8.0, 5), (64.0, 8.0, 5)]
)
def test_the_search_follows_the_slope_but_not_for_ever(optimum: float, found: float, tried: int) -> None:
    asked: list[float] = []

    def loss(factor: float) -> float:
        asked.append(factor)
        return abs(math.log2(factor / optimum))

    assert best_factor(loss) == found
    assert len(asked) == tried


def test_the_search_leaves_a_cliff_downwards_and_says_when_there_is_no_ground() -> None:
    assert best_factor(lambda factor: 5.0 if factor <= 0.25 else math.inf) in (0.25, 0.125)
    assert best_factor(lambda _: math.inf) is None


@pytest.mark.process
def test_a_whole_study_finds_rates_goes_on_after_failures_and_repeats_nothing(tmp_path: Path, quick: str) -> None:
    said: list[str] = []
    results = ready(tmp_path / "s.json")
    assert Study(tiny(), results, say=said.append).run(jobs=2) == 1, "lans cannot run, the others do"
    runs = results.data["runs"]
    assert "no such kernel" in results.data["failed"]["lans"]
    assert runs["baseline/tune/1"]["lr"] == presets.fast().optimizer.lr
    best = min((run["loss"], run["lr"]) for key, run in runs.items() if key.startswith("baseline/tune"))
    assert {runs[f"{name}/seed/{seed}"]["lr"] for name in (BASELINE, "dropped") for seed in (1, 2)} == {best[1]}
    assert "fixed/seed/2" not in runs
    assert json.loads((tmp_path / "s.json").read_text())["runs"] == runs
    before = {key: run["finished"] for key, run in runs.items()}
    monkey = Study(tiny(seeds=3), StudyResults(tmp_path / "s.json"), say=said.append)
    monkey.run(jobs=1)
    after = monkey.results.data["runs"]
    assert set(after) - set(before) == {"baseline/seed/3", "dropped/seed/3"}
    assert all(after[key]["finished"] == when for key, when in before.items())


PARENT = """
import sys
from pathlib import Path
from tests.bench.test_study import tiny
from workbench.bench import study
from workbench.bench.study_results import StudyResults
study.WORKER = "quick_worker"
results = StudyResults(Path(sys.argv[1]))
with results.own():
    study.Study(tiny(), results).run(jobs=1)
"""


@pytest.mark.process
def test_kill_9_loses_the_run_in_hand_at_most(tmp_path: Path, quick: str) -> None:
    path = tmp_path / "s.json"
    ready(path)
    root = Path(__file__).parent.parent.parent
    environment = {**os.environ, "QUICK_SECONDS": "0.4", "PYTHONPATH": f"{tmp_path}{os.pathsep}{root}"}
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(path)], env=environment, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    done: dict[str, Any] = {}
    while len(done) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
        # At every moment a whole file: it is replaced, never written into.
        done = json.loads(path.read_text(encoding="utf-8"))["runs"]
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    done = json.loads(path.read_text(encoding="utf-8"))["runs"]
    assert len(done) >= 2
    results = StudyResults(path)
    # The lock died with its holder.
    with results.own():
        Study(tiny(), results, say=lambda _: None).run(jobs=2)
    assert len(results.data["runs"]) > len(done)
    assert {key: results.data["runs"][key]["finished"] for key in done} == {k: r["finished"] for k, r in done.items()}


@pytest.mark.process
def test_two_arms_two_seeds_with_the_real_trainer(
    tmp_path: Path, learnable: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    base = presets.fast().with_assignments(learnable)
    arms = (Arm(BASELINE, "Baseline"), Arm("dropped", "Depth", {"depth": "progressive_drop"}))
    study = Study(
        StudySet("tiny", lambda: base, 12, 0.5, 2, arms), StudyResults(tmp_path / "s.json"), say=lambda _: None
    )
    study.calibrate(segments=2, steps=2)
    assert study.run(jobs=1) == 0
    runs = study.results.data["runs"]
    assert set(runs) == {f"{name}/seed/{seed}" for name in (BASELINE, "dropped") for seed in (1, 2)}
    assert runs["baseline/seed/1"]["steps"] == 12
    assert runs["dropped/seed/1"]["steps"] == study.budget(arms[1])["amount"]
    assert all(0 < run["loss"] < 10 and run["evaluated_tokens"] >= 1024 for run in runs.values())
    assert runs["baseline/seed/1"]["loss"] != runs["baseline/seed/2"]["loss"]
