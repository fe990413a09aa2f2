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
def test_a_second_start_goes_on_and_again_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    measured: list[Mode] = []

    def compare(recipe: Any, *_: Any) -> dict[str, Any]:
        asked.append(recipe.name)
        if len(asked) == 2:
            raise WorkbenchError("stopped here")
        return _case(0.1, 0.1)

    monkeypatch.setattr(bench, "compare", compare)
    monkeypatch.setattr(bench, "measured", lambda mode, fresh: measured.append(mode) or RATES)
    out = tmp_path / "results" / "forecast.json"
    options = ["--out", str(out), "--steps", "3", "--only", "fast", "pld"]
    assert bench.main(options) == 0
    assert asked == ["fast", "pld"]
    assert json.loads(out.read_text())["runs"]["pld"]["error"] == "stopped here"
    # One calibration for both; the one that failed is not tried again, being known; another budget is another recipe.
    assert len(measured) == 1
    assert bench.main(options) == 0
    assert asked == ["fast", "pld"]
    assert bench.main(["--out", str(out), "--steps", "4", "--only", "fast"]) == 0
    assert asked == ["fast", "pld", "fast"]
    assert len(measured) == 1
    assert bench.main([*options, "--again"]) == 0
    assert asked == ["fast", "pld", "fast", "fast", "pld"]
    assert len(measured) == 2


def test_a_name_that_is_none_is_told_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(WorkbenchError, match=r"no recipe is called 'slow'.*'fast, muon'"):
        bench.main(["--out", str(tmp_path / "forecast.json"), "--only", "slow"])


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
