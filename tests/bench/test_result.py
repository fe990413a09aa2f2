"""A result file says what ran, where and with what."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch

from workbench import presets
from workbench.base.errors import WorkbenchError
from workbench.bench.result import ResultsFile, definition, save, spread


def test_spread_of_readings() -> None:
    assert spread([3.0, 1.0, 2.0]) == {"median": 2.0, "min": 1.0, "max": 3.0}


@pytest.mark.process
def test_a_file_has_hardware_versions_and_date_and_a_second_of_one_day_overwrites_nothing(tmp_path: Path) -> None:
    first, second = (save("trial", {"ratio": ratio}, tmp_path / "new") for ratio in (1.0, 2.0))
    found = [json.loads(path.read_text(encoding="utf-8")) for path in (first, second)]
    assert first.name == f"trial-{found[0]['date']}.json"
    assert second.stem == f"{first.stem}-2"
    assert [each["ratio"] for each in found] == [1.0, 2.0]
    assert found[0]["hardware"]["cores"] == os.cpu_count()
    assert found[0]["versions"]["torch"] == torch.__version__
    assert os.uname().nodename not in first.read_text(encoding="utf-8"), "no host names in files meant to be shared"


@pytest.mark.process
def test_runs_are_found_again_by_name_and_recipe(tmp_path: Path) -> None:
    recipe = presets.fast()
    results = ResultsFile(tmp_path / "trial.json", "trial")
    results.add("one", recipe, {"loss": 5.25})
    again = ResultsFile(tmp_path / "trial.json", "trial")
    assert again.known("one", recipe)["loss"] == 5.25
    assert again.known("one", recipe.with_(seed=7)) is None, "made from another recipe: it has to be run"
    assert again.known("two", recipe) is None
    assert [path.name for path in tmp_path.iterdir()] == ["trial.json"], "nothing half-written stays"


def test_two_processes_never_fill_one_file(tmp_path: Path) -> None:
    results = ResultsFile(tmp_path / "new" / "trial.json", "trial")
    with results.own(), pytest.raises(WorkbenchError, match="another process"):
        ResultsFile(tmp_path / "new" / "trial.json", "trial").own()
    with results.own():
        pass


@pytest.mark.parametrize("text", ["{", "[]", '{"benchmark": "peers", "runs": {}}', '{"benchmark": "trial"}'])
def test_other_files_are_left_alone(text: str, tmp_path: Path) -> None:
    path = tmp_path / "trial.json"
    path.write_text(text)
    with pytest.raises(WorkbenchError, match="--out"):
        ResultsFile(path, "trial")
    assert path.read_text() == text


def test_definition_holds_what_decides_a_run_and_nothing_of_the_machine() -> None:
    base = presets.fast()
    files = {"kind": "files", "paths": ["one-place"]}
    assert definition(base) == definition(base.with_(name="another", notes="x", execution={"threads": 7}))
    assert definition(base.with_(data=files)) == definition(base.with_(data={**files, "paths": ["another-place"]}))
    for change in ({"seed": 3}, {"budget": "7 steps"}, {"optimizer.lr": 1e-4}, {"depth": "progressive_drop"}):
        assert definition(base) != definition(base.with_(**change))


@pytest.mark.parametrize("name", ["presets", "forecast"])
def test_published_results_can_be_gone_on_with(name: str) -> None:
    assert ResultsFile(Path(__file__).parents[2] / "docs" / "results" / f"{name}.json", name).data["runs"]
