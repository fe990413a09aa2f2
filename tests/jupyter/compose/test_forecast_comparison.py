"""The panel beside a run: its forecast and what was measured, side by side."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.forecasting.machine_rates import RATES
from tests.jupyter.compose.measured_machine import Machine, settled
from tests.jupyter.live import run_folder, until
from tests.jupyter.messages import published
from tests.plots.ahead import FOUND
from workbench.choices.execution.autotune import Plan
from workbench.client.run import Run
from workbench.forecasting.forecast import forecast
from workbench.jupyter.compose.forecast_panel import ForecastPanel
from workbench.recipes.recipe import Recipe
from workbench.store.folder import RunFolder, write_json
from workbench.store.state import write_state
from workbench.telemetry.streams import TelemetryWriter


def begun(tmp_path: Path, recipe: Recipe, run_id: str = "run-b", speed: float = 8192.0) -> RunFolder:
    folder = run_folder(tmp_path / "runs" / run_id, name="begun")
    write_json(folder.recipe, recipe.to_dict())
    write_json(folder.environment, {"parameters": 1000, "memory_before_gib": 0.5})
    writer = TelemetryWriter(folder.telemetry)
    writer.scalars(1, 0.5, 4096, loss=3.0, memory_gib=0.75, tokens_per_second=speed)
    writer.close()
    return folder


def test_a_run_is_compared_with_the_forecast_that_was_on_the_screen(
    panel: ForecastPanel, recipe: Recipe, tmp_path: Path
) -> None:
    folder = begun(tmp_path, recipe)
    panel.show(recipe)
    settled(panel)
    panel.compare(Run(folder))
    settled(panel)
    kept = json.loads(folder.forecast.read_text())
    assert kept["parameters"] == forecast(recipe, rates=RATES).parameters
    assert kept["made"] == pytest.approx(time.time(), abs=60)
    assert panel.beside in panel.children
    for words in ("forecast (from speeds measured on the machine) and measured", "8,192", "256 MiB"):
        assert words in panel.comparison.value, words
    assert "fast: now 8,192 tokens/s; forecast" in panel.beside.value
    panel.compare(None)
    assert panel.beside not in panel.children


def test_a_run_that_is_picked_while_another_is_forecast_shows_what_it_has_measured_itself(
    panel: ForecastPanel, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, other = begun(tmp_path, recipe), begun(tmp_path, recipe, "run-c", 1024.0)
    of_run, asked, go_on = panel._forecasts.of_run, threading.Event(), threading.Event()

    def waiting(run: Run) -> dict[str, Any]:
        asked.set()
        assert go_on.wait(60)
        return of_run(run)

    monkeypatch.setattr(panel._forecasts, "of_run", waiting)
    panel.show(recipe)
    settled(panel)
    panel.compare(Run(slow))
    assert asked.wait(60)
    panel.compare(Run(other))
    go_on.set()
    settled(panel)
    assert "now 1,024 tokens/s" in panel.beside.value


def test_what_was_said_of_measuring_goes_with_the_run_it_was_for(
    panel: ForecastPanel, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measuring(run: Run) -> dict[str, Any]:
        panel._check_wanted(recipe, False, 2.0)
        assert "Measuring this machine" in panel.status.value
        panel.compare(None)
        return FOUND

    monkeypatch.setattr(panel._forecasts, "of_run", measuring)
    panel.show(recipe)
    settled(panel)
    panel.compare(Run(begun(tmp_path, recipe)))
    settled(panel)
    assert "Measuring" not in panel.status.value


def test_a_thread_tells_the_page_of_no_new_widget(
    machine: Machine, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Which a page that is loaded again at that moment would show as a broken icon from then on.
    sent = published(monkeypatch)
    panel = ForecastPanel(tmp_path / "runs")
    assert "ToggleButtonModel" in sent.models
    del sent[:]
    panel.show(recipe)
    settled(panel)
    machine.measured = False
    panel.compare(Run(begun(tmp_path, recipe)))
    settled(panel)
    assert {panel._top, panel.beside} <= set(panel.children)
    assert sent.models == []


def test_what_waits_to_be_measured_goes_with_a_run_that_fails_before(
    panel: ForecastPanel, recipe: Recipe, tmp_path: Path
) -> None:
    folder = run_folder(tmp_path / "runs" / "run-f", name="begun")
    write_json(folder.recipe, recipe.to_dict())
    write_json(folder.forecast, FOUND)
    panel.compare(Run(folder))
    settled(panel)
    assert "not measured yet" in panel.beside.value
    write_state(folder, status="failed", message="no such file")
    panel.compare(Run(folder))
    settled(panel)
    assert panel.beside not in panel.children
    assert panel.comparison.value == ""


def test_a_stopped_run_that_is_resumed_is_said_to_train_again(
    panel: ForecastPanel, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.jupyter.compose.forecast_panel.REFRESH_SECONDS", 0.05)
    folder = begun(tmp_path, recipe)
    write_json(folder.forecast, FOUND)
    for status, said in (("stopped", "stopped at"), ("running", "now"), ("finished", "finished at")):
        write_state(folder, status=status)
        if status == "stopped":
            panel.compare(Run(folder))
        until(lambda said=said: f"fast: {said} 8,192 tokens/s; forecast" in panel.beside.value)  # type: ignore[misc]


def test_a_comparison_survives_a_restart_and_needs_no_forecast_of_its_own(
    panel: ForecastPanel, machine: Machine, recipe: Recipe, tmp_path: Path
) -> None:
    folder = begun(tmp_path, recipe)
    write_json(folder.forecast, {**FOUND, "parameters": 2000})
    write_state(folder, status="finished", step=200, seconds=100.0)
    panel.compare(Run(folder))
    settled(panel)
    assert "50%" in panel.comparison.value
    assert machine.asked == 0
    folder.forecast.write_text("[")
    panel.compare(Run(folder))
    settled(panel)
    assert machine.asked == 1, "a damaged one is made again"
    panel.compare(Run(folder))
    settled(panel)
    assert machine.asked == 1, "once"
    assert folder.forecast.read_text() == "[", "made after the run, it is not kept as one from before"


def test_looking_at_a_run_measures_nothing_unasked(
    panel: ForecastPanel, machine: Machine, recipe: Recipe, tmp_path: Path
) -> None:
    folder = begun(tmp_path, recipe)
    write_state(folder, status="finished", step=50, seconds=10.0)
    machine.measured = False
    panel.compare(Run(folder))
    settled(panel)
    assert not machine.measuring.is_set()
    assert "not forecast at its launch" in panel.beside.value
    assert panel.measure in panel.children
    panel.measure.click()
    settled(panel)
    assert "and measured" in panel.comparison.value
    assert panel.measure not in panel.children
    machine.measured = False
    panel.show(recipe.with_(seed=1))
    settled(panel)
    assert ">50<" in panel.headline.value, "nobody trains: measured without asking"


def test_a_fork_is_forecast_as_what_it_has_left_to_train(panel: ForecastPanel, recipe: Recipe, tmp_path: Path) -> None:
    whole = int(recipe.budget.amount)
    folder = begun(tmp_path, recipe)
    write_json(folder.origin, {"run": "run-0", "step": whole - 20, "seconds": 1.0})
    panel.compare(Run(folder))
    settled(panel)
    assert f"<td>steps</td><td>{whole}</td>" not in panel.comparison.value
    assert panel._forecasts.of_run(Run(folder))["steps"] == 20


def test_a_run_that_cannot_be_read_says_so(panel: ForecastPanel, tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "runs" / "run-c", name="damaged")
    folder.recipe.write_text("{")
    panel.compare(Run(folder))
    settled(panel)
    assert "wb-wrong" in panel.comparison.value
    model = {"kind": "own_model", "model": "Net", "parameters": 5, "frozen": 0, "layers": 1, "stack": ""}
    write_json(folder.recipe, Recipe().to_dict() | {"architecture": model})
    panel.compare(Run(folder))
    settled(panel)
    assert "no forecast: a model of this run were a Python program&#x27;s own" in panel.comparison.value


def test_a_plan_that_was_found_meanwhile_is_taken_up(
    panel: ForecastPanel, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a launched run of execution 'auto' finds it: the numbers stop to be those of the defaults."""
    auto = recipe.with_(execution={"kind": "auto"})
    panel.show(auto)
    settled(panel)
    assert "with default settings, until &#x27;auto&#x27; has found its own" in panel.line.value
    folder = begun(tmp_path, auto)
    write_json(folder.forecast, {**FOUND, "provisional": "until later"})
    monkeypatch.setattr("workbench.choices.execution.autotune.remembered", lambda _recipe: Plan(date="2026-01-01"))
    panel.compare(Run(folder))
    settled(panel)
    settled(panel)  # looking at the run is what asks for the other forecast
    assert "default settings" not in panel.line.value
    assert json.loads(folder.forecast.read_text())["provisional"] == ""
    panel.compare(None)
