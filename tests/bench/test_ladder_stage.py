"""Child processes of a ladder: how many, what they are asked at once, and what they are told; no training here."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest

from workbench.bench import ladder_stage, result
from workbench.bench.ladder_stage import Arm, Stage
from workbench.bench.ladder_tracks import causal
from workbench.bench.result import ResultsFile
from workbench.recipes.recipe import Recipe

RECIPE = causal(20)
TUNED = Arm("tuned", "tuned", "bench.theirs", RECIPE, {"tuned": True})
OURS = Arm("ours", "ours", "bench.ours", RECIPE, {})


class Children:
    """Those that were started, by their settings; each finds a way of its own unless it is told one."""

    def __init__(self) -> None:
        self.settings: list[dict[str, Any]] = []
        self.asked: list[int] = []
        self.together = threading.Barrier(1)

    def contender(self, module: str, setting: dict[str, Any]) -> Child:
        self.settings.append(setting)
        return Child(self, setting.get("way") or {"number": len(self.settings)} if setting.get("tuned") else None)


class Child:
    ready: ClassVar = {"unigram_entropy": 6.0}

    def __init__(self, of: Children, way: dict[str, Any] | None) -> None:
        self._of, self._way = of, way

    def __enter__(self) -> Self:
        assert threading.current_thread() is threading.main_thread(), "with its thread it would end"
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        self._of.together.wait(10)
        self._of.asked.append(message["recipe"]["seed"])
        return {"loss": 5.0 + message["recipe"]["seed"] / 100, "steps": 20, "cpu_seconds": 1.0, "way": self._way}


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Children:
    found = Children()
    monkeypatch.setattr(ladder_stage, "Contender", found.contender)
    monkeypatch.setattr(result, "revision", lambda: "of no process")
    return found


def seeds(*numbers: int) -> list[Recipe]:
    return [RECIPE.with_(seed=number) for number in numbers]


def test_two_runs_of_an_arm_train_side_by_side_and_none_twice(children: Children, tmp_path: Path) -> None:
    results = ResultsFile(tmp_path / "ladder.json", "ladder")
    with Stage(results, 2) as stage:
        children.together = threading.Barrier(2)  # neither is answered before both are asked
        train = stage.trainer(OURS)
        assert [run["loss"] for run in train(seeds(3, 1))] == [5.03, 5.01]
        children.together = threading.Barrier(1)
        assert [run["loss"] for run in train(seeds(1, 2, 3))] == [5.01, 5.02, 5.03]
    assert sorted(children.asked) == [1, 2, 3]
    assert len(children.settings) == 2
    with Stage(ResultsFile(tmp_path / "ladder.json", "ladder"), 2) as stage:
        assert [run["loss"] for run in stage.trainer(OURS)(seeds(2, 3))] == [5.02, 5.03]
    assert len(children.settings) == 2, "another start goes on with what is there"


def test_runs_of_two_arms_train_side_by_side(children: Children, tmp_path: Path) -> None:
    children.together = threading.Barrier(2)
    with Stage(ResultsFile(tmp_path / "ladder.json", "ladder"), 2) as stage:
        found = stage.train([(TUNED, RECIPE.with_(seed=1)), (OURS, RECIPE.with_(seed=2))])
        assert [run["loss"] for run in found] == [5.01, 5.02]
        children.together = threading.Barrier(1)
        stage.train([(OURS, RECIPE.with_(seed=3))])
        assert len(children.settings) == 2, "a process for each arm, and for what it trains later"
        children.together = threading.Barrier(2)
        stage.train([(TUNED, RECIPE.with_(seed=3)), (TUNED, RECIPE.with_(seed=4))])
    assert [setting["way"] for setting in children.settings if setting.get("tuned")] == [None, {"number": 1}]


def test_one_at_a_time_is_one_process(children: Children, tmp_path: Path) -> None:
    with Stage(ResultsFile(tmp_path / "ladder.json", "ladder"), 1) as stage:
        stage.trainer(OURS)(seeds(1, 2, 3))
    assert children.asked == [1, 2, 3]
    assert len(children.settings) == 1


def test_the_tuned_arm_trains_in_one_way_in_all_processes(children: Children, tmp_path: Path) -> None:
    results = ResultsFile(tmp_path / "ladder.json", "ladder")
    with Stage(results, 2) as stage:
        train = stage.trainer(TUNED)
        train(seeds(1))
        children.together = threading.Barrier(2)
        train(seeds(2, 3))
    assert [setting["way"] for setting in children.settings] == [None, {"number": 1}]
    assert {str(run["way"]) for run in results.data["runs"].values()} == {"{'number': 1}"}
    # A start that goes on with these results is told, too.
    with Stage(ResultsFile(tmp_path / "ladder.json", "ladder"), 1) as stage:
        children.together = threading.Barrier(1)
        train = stage.trainer(TUNED)
        train(seeds(1))
        train(seeds(4))
    assert children.settings[-1]["way"] == {"number": 1}
