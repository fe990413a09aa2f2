"""How errors are summed up, what the file keeps, and that a second start goes on where the first was stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.forecasting.machine_rates import RATES
from workbench import presets
from workbench.base.errors import WorkbenchError
from workbench.bench import forecast as bench
from workbench.bench.forecast_cases import RECIPES
from workbench.bench.harness import run
from workbench.choices.execution import Mode


def _case(time: float, memory: float, mode: str = "eager", inside: bool = True) -> dict[str, Any]:
    return {
        "time_error": time, "memory_error": memory, "mode": mode, "inside": inside,
        "measured": {"seconds": 1.0, "memory_bytes": 1 << 20, "compile_seconds": 0.0},
        "forecast": {"seconds": 1.0, "memory_bytes": 1 << 20, "compile_seconds": 0.0},
    }  # fmt: skip


def test_summary_names_the_worst_and_what_failed_by_mode() -> None:
    found = {
        "a": _case(-0.3, 0.1),
        "b": _case(0.1, -0.2, inside=False),
        "c": {"error": "no memory", "mode": "eager"},
        "d": _case(0.5, 0.0, "compiled"),
    }
    said = bench.summary(found)
    assert said["failed"] == ["c"]
    assert (said["eager"]["recipes"], said["eager"]["inside_the_band"]) == (2, 1)
    assert said["eager"]["time_error"] == {
        "median": pytest.approx(0.2), "worst": -0.3, "recipe": "a", "mean_with_sign": pytest.approx(-0.1),
    }  # fmt: skip
    assert said["eager"]["memory_error"]["worst"] == -0.2
    assert said["compiled"]["time_error"]["median"] == 0.5


@pytest.mark.process
@pytest.mark.parametrize("whole", [False, True])
def test_a_second_start_goes_on_and_again_begins_anew(
    whole: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []
    calibrated: list[Mode] = []

    def compare(recipe: Any, *_: Any) -> dict[str, Any]:
        asked.append(recipe.name)
        if len(asked) == 2:
            raise WorkbenchError("stopped here")
        return _case(0.1, 0.1)

    def compare_run(recipe: Any, times: int) -> dict[str, Any]:
        asked.append(recipe.name)
        return {"forecast_bytes": 1 << 20, "measured_bytes": [1 << 20] * times, "memory_error": [0.0] * times}

    monkeypatch.setattr(bench, "compare", compare)
    monkeypatch.setattr(bench, "compare_run", compare_run)
    monkeypatch.setattr(bench.calibration, "measured", lambda mode, fresh: calibrated.append(mode) or RATES)
    out = tmp_path / "results" / "forecast.json"
    names = list(RECIPES)[:2] if whole else ["fast", "pld"]
    options = ["--out", str(out), "--only", *names, *(["--runs", "2"] if whole else ["--steps", "3"])]
    assert run("forecast", options) == run("forecast", options) == 0
    # The one that failed is not tried again, being known.
    assert len(asked) == 2
    found = json.loads(out.read_text())["runs"]
    assert list(found) == names
    assert found["pld"]["error"] == "stopped here" if not whole else "1, 1" in capsys.readouterr().out
    if not whole:
        # Another budget is another recipe; one calibration for all.
        assert run("forecast", ["--out", str(out), "--steps", "4", "--only", "fast"]) == 0
        assert (len(asked), len(calibrated)) == (3, 1)
    before = len(asked)
    assert run("forecast", [*options, "--again"]) == 0
    assert len(asked) == before + 2


def test_a_name_that_is_none_is_told_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(WorkbenchError, match=r"no recipe is called 'slow'.*'fast, muon'"):
        run("forecast", ["--out", str(tmp_path / "forecast.json"), "--only", "slow"])


@pytest.mark.extended
@pytest.mark.process
def test_a_recipe_is_forecast_and_trained(learnable: list[str]) -> None:
    recipe = presets.fast().with_assignments([*learnable, "budget.amount=5"])
    found = bench.compare(recipe, 5, RATES)
    assert found["parameters_agree"]
    assert found["flops_error"] == pytest.approx(0, abs=0.02)
    assert found["measured"]["seconds"] > 0
    assert found["measured"]["compile_seconds"] == found["forecast"]["compile_seconds"] == 0.0
    assert found["measured"]["memory_bytes"] > 4 * 3 * 100_000
