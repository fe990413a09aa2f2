"""The panel: never in the way, the latest recipe wins, measuring is asked for while runs train."""

from __future__ import annotations

import gc
import re
import time
import weakref
from pathlib import Path

import ipywidgets
import pytest

from tests.forecasting.machine_rates import RATES
from tests.jupyter.compose.measured_machine import Machine, settled
from tests.jupyter.live import run_folder, until
from workbench.base.fields import put
from workbench.choices.data.prepare import prepare
from workbench.client.run import Run
from workbench.forecasting.forecast import forecast
from workbench.jupyter.compose.composer import Composer
from workbench.jupyter.compose.forecast_panel import ForecastPanel
from workbench.jupyter.compose.forecasts import settled_since
from workbench.recipes.recipe import Recipe


def dim(panel: ForecastPanel) -> bool:
    return "wb-forecast-old" in panel.headline._dom_classes


def test_a_recipe_is_forecast_in_the_background(panel: ForecastPanel, recipe: Recipe) -> None:
    assert panel.sheet not in panel.children
    began = time.perf_counter()
    panel.show(recipe)
    assert time.perf_counter() - began < 0.5, "it returns at once"
    settled(panel)
    expected = forecast(recipe, rates=RATES)
    assert f"{expected.parameters:,}" in panel.headline.value
    assert ">50<" in panel.headline.value
    assert {"wb-memory-bar", "wb-spark"} <= set(panel.details.value.split('"'))
    assert panel.sheet in panel.children
    assert {panel.headline, panel.details, panel._row} <= set(panel.sheet.children)
    assert not dim(panel)
    panel.more.value = False
    assert [child for child in panel.children if child is not panel._style] == [panel._top]
    assert "</strong> tokens/s" in panel.line.value, "closed, it says the same in a sentence"


def another_is_waited_for(panel: ForecastPanel, machine: Machine, recipe: Recipe) -> None:
    """A recipe's numbers are there, and the machine is measured for those of another one."""
    panel.show(recipe)
    settled(panel)
    machine.measured = False
    machine.go_on.clear()
    panel.show(recipe.with_(budget="60 steps"))
    assert machine.measuring.wait(60)


def test_the_latest_wins_and_old_numbers_stay_dimmed(panel: ForecastPanel, machine: Machine, recipe: Recipe) -> None:
    another_is_waited_for(panel, machine, recipe)
    for steps in range(61, 70):
        panel.show(recipe.with_(budget=f"{steps} steps"))
    panel.show(recipe.with_(budget="69 steps"))
    assert dim(panel), "the numbers of another recipe, shown twice or not"
    assert ">50<" in panel.headline.value
    assert "Measuring this machine, once for runs like this: 0 of about 20 s" in panel.status.value
    assert panel.status in panel.children
    machine.go_on.set()
    settled(panel)
    assert ">69<" in panel.headline.value
    assert not dim(panel)
    assert panel.status not in panel.children
    assert machine.asked == 3, "eight recipes were overtaken"
    panel.show(recipe)
    assert ">50<" in panel.headline.value, "one that was shown before is there at once"


def test_numbers_that_come_late_take_no_place_of_the_right_ones(
    panel: ForecastPanel, machine: Machine, recipe: Recipe
) -> None:
    another_is_waited_for(panel, machine, recipe)
    # Taken back before its forecast is there.
    panel.show(recipe)
    machine.go_on.set()
    settled(panel)
    assert ">50<" in panel.headline.value
    assert not dim(panel)


def test_a_recipe_that_cannot_run_dims_the_last_numbers(panel: ForecastPanel, machine: Machine, recipe: Recipe) -> None:
    panel.show(None)
    assert machine.asked == 0
    assert "as soon as the recipe can run" in panel.status.value
    panel.show(recipe)
    settled(panel)
    panel.show(None)
    assert dim(panel)
    assert ">50<" in panel.headline.value
    panel.show(recipe)
    assert not dim(panel)


def test_runs_that_train_are_not_disturbed_unasked(
    panel: ForecastPanel, machine: Machine, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_folder(tmp_path / "runs" / "run-a", name="busy", budget={"amount": 100, "unit": "steps"})
    monkeypatch.setattr(Run, "status", "running")
    machine.measured = False
    machine.go_on.clear()
    judged: list[tuple[str, str]] = []
    panel._judged = lambda *found: judged.append(found)
    panel.show(recipe)
    settled(panel)
    assert judged == [(recipe.hash, "")], "nothing speaks against it, as far as anybody knows"
    assert not machine.measuring.is_set()
    assert "Not measured" in panel.status.value
    assert len(panel.status.value) <= 150, "with its tags; in the Lab's box two lines stand above the button"
    assert panel.measure in panel.children
    assert panel.sheet not in panel.children
    machine.measuring.set()  # by another process, which is waited for
    panel.measure.click()
    until(lambda: panel._forecasts.measuring)
    assert panel.measure not in panel.children, "not offered while it measures"
    machine.go_on.set()
    settled(panel)
    assert ">50<" in panel.headline.value
    assert panel.measure not in panel.children


def test_the_last_numbers_stay_dimmed_where_no_others_are_to_come(
    machine: Machine, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = ForecastPanel(tmp_path / "runs")
    panel.show(recipe)
    settled(panel)
    run_folder(tmp_path / "runs" / "run-a", name="busy", budget={"amount": 100, "unit": "steps"})
    monkeypatch.setattr(Run, "status", "running")
    machine.measured = False
    panel.show(recipe.with_(budget="60 steps"))
    settled(panel)
    assert "Not measured" in panel.status.value
    assert "tokens/s" in panel.line.value
    assert "wb-forecast-old" in panel.line._dom_classes
    panel.show(recipe)
    assert "wb-forecast-old" not in panel.line._dom_classes
    panel.close()


def test_whoever_must_know_waits_for_a_forecast_but_not_for_a_measurement(
    panel: ForecastPanel, machine: Machine, recipe: Recipe
) -> None:
    judged: list[str] = []
    panel._judged = lambda found, _why: judged.append(found)
    panel.settle()  # of nothing
    panel.show(recipe)
    panel.settle(60)
    assert judged == [recipe.hash]
    machine.measured = False
    machine.go_on.clear()
    other = recipe.with_(budget="60 steps")
    panel.show(other)
    assert machine.measuring.wait(60)
    panel.settle(60)
    assert judged == [recipe.hash], "it came back while the machine is measured"
    machine.go_on.set()
    settled(panel)
    assert judged[-1] == other.hash


def test_measuring_is_not_offered_while_it_goes_on_and_a_run_is_looked_at(
    panel: ForecastPanel, machine: Machine, recipe: Recipe, tmp_path: Path
) -> None:
    folder = run_folder(tmp_path / "runs" / "20260101-000000-a-000000-0000", "finished", False)
    recipe.with_(seed=7).save(folder.recipe)
    machine.measured = False
    machine.go_on.clear()
    counted: list[bool] = []
    panel._forecasts._check_wanted = lambda _recipe, composed, _seconds: counted.append(composed)
    panel.show(recipe)
    assert machine.measuring.wait(60)
    panel.compare(Run(folder))
    assert panel._beside.wait(60)
    assert "has not been measured" in panel.beside.value
    assert panel.measure not in panel.children
    assert set(counted) == {True}, "one measurement: its seconds are not counted a second time"
    machine.go_on.set()
    settled(panel)


def test_errors_stand_in_the_panel(panel: ForecastPanel, machine: Machine, recipe: Recipe) -> None:
    machine.measured, machine.broken = False, "measuring failed: <b>why</b>"
    panel.show(recipe)
    settled(panel)
    assert "measuring failed: &lt;b&gt;why" in panel.status.value
    assert "role='alert'" in panel.status.value
    assert panel.measure in panel.children, "it can be tried again"
    machine.broken = ""
    panel.measure.click()
    settled(panel)
    assert ">50<" in panel.headline.value
    assert panel.status not in panel.children


def test_an_error_goes_with_the_recipe_that_caused_it(panel: ForecastPanel, machine: Machine, recipe: Recipe) -> None:
    panel.show(recipe)
    settled(panel)
    machine.measured, machine.broken = False, "no rates"
    for way_back in (recipe, None):
        panel.show(recipe.with_(optimizer={"lr": 0.5}))
        settled(panel)
        assert "no rates" in panel.status.value
        panel.show(way_back)
        assert panel.status not in panel.children


def test_a_measurement_for_another_mode_than_is_composed_ends(
    panel: ForecastPanel, machine: Machine, recipe: Recipe
) -> None:
    machine.measured = False
    machine.go_on.clear()
    panel.show(recipe)
    assert machine.measuring.wait(60)
    panel.show(recipe.with_(optimizer={"lr": 0.5}))
    assert not panel._ahead.wait(0.1), "of the same mode: goes on"
    machine.measuring.clear()
    panel.show(recipe.with_(execution={"precision": "bf16"}))
    assert machine.measuring.wait(60), "the first ended, another began"
    assert machine.asked == 2
    machine.go_on.set()
    settled(panel)
    assert ">50<" in panel.headline.value


def test_a_price_gives_the_cost_without_a_new_forecast(panel: ForecastPanel, machine: Machine, recipe: Recipe) -> None:
    panel.show(recipe)
    settled(panel)
    assert "cost" not in panel.headline.value
    panel.price.source.value = "3600"
    assert ">cost<" in panel.headline.value
    panel.price.source.value = "cheap"
    assert ">cost<" not in panel.headline.value
    assert "must be a number" in panel._row.children[-1].value
    panel.price.source.value = ""
    assert len(panel._row.children) == 1
    assert machine.asked == 1


def test_a_panel_that_is_closed_or_forgotten_ends(panel: ForecastPanel, recipe: Recipe) -> None:
    panel.close()
    panel.show(recipe)
    assert panel._ahead.wait(1)
    forgotten = ForecastPanel()
    seen = weakref.ref(forgotten)
    forgotten.close()
    del forgotten
    gc.collect()
    assert seen() is None


def test_it_says_what_shares_the_machine(
    panel: ForecastPanel, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Other tests prepare this text in the cache that all share.
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "cache"))
    panel.show(recipe)
    settled(panel)
    assert (
        "from speeds measured on the machine; and once, reading the text and learning its vocabulary"
        in panel.line.value
    )
    found = {"preparation": "and once"}
    assert not settled_since(found, recipe)
    prepare(recipe.data, say=lambda line: None)
    assert settled_since(found, recipe)
    panel.show(recipe.with_(seed=5))
    settled(panel)
    assert "from speeds measured on the machine</span>" in panel.line.value
    panel.share(2)
    assert "; 2 runs train on it now" in panel.line.value
    panel.share(0)
    assert "now" not in panel.line.value


def test_what_does_not_fit_is_not_called_ready(machine: Machine, recipe: Recipe, tmp_path: Path) -> None:
    composer = Composer(recipe)
    composer.dock(ipywidgets.Box(), ipywidgets.Box(), [])
    panel = ForecastPanel(tmp_path / "runs", judged=composer.verdict.judge)
    panel.show(composer.recipe)
    settled(panel)
    assert "ready" in composer.verdict.value
    composer.enter(put(composer.fields, "data.batch_size", 1_000_000))
    panel.show(composer.recipe)
    settled(panel)
    assert "ready" not in composer.verdict.value
    assert re.search(r" changed .*lab-bad.*does not fit: it needs [\d,]+ GiB, the device has ", composer.verdict.value)
    bar = composer.children[-1]
    assert "lab-doubted" in bar._dom_classes, "Launch still leads the eye"
    composer.undo()
    panel.show(composer.recipe)
    settled(panel)
    assert "ready" in composer.verdict.value
    assert "lab-doubted" not in bar._dom_classes
    composer.enter(put(composer.fields, "optimizer.lr", 90.0))
    panel.show(composer.recipe)
    settled(panel)
    assert "lab-bad" in composer.verdict.value
    assert "optimizer.lr 90 is 90,000 times" in composer.verdict.value
    panel.close()


def test_what_a_limit_will_refuse_is_not_called_ready(machine: Machine, recipe: Recipe, tmp_path: Path) -> None:
    composer = Composer(recipe.with_(**{"execution.recompute": "budget", "execution.memory_gib": 8.0}))
    panel = ForecastPanel(tmp_path / "runs", judged=composer.verdict.judge)
    panel.show(composer.recipe)
    settled(panel)
    assert "ready" in composer.verdict.value
    # Weights, gradients and two moments, and hardly more.
    gib = round(16.5 * panel._found["parameters"] / 2**30, 5)
    composer.enter(put(composer.fields, "execution.memory_gib", gib))
    panel.show(composer.recipe)
    settled(panel)
    refused = f"expected to be refused at its start under a limit of {gib:.3g} GiB: execution.memory_gib: "
    assert "ready" not in composer.verdict.value
    assert refused in composer.verdict.value
    assert f"This run is {refused}" in panel.line.value


def test_details_can_open_elsewhere(machine: Machine, recipe: Recipe, tmp_path: Path) -> None:
    shown: list[object] = []
    panel = ForecastPanel(tmp_path / "runs", aside=shown.append)
    panel.show(recipe)
    settled(panel)
    panel.more.value = True
    (opened,) = shown
    assert panel.sheet in opened.children
    assert panel.sheet not in panel.children
    opened.closed()
    assert shown[1:] == [None]
    assert not panel.more.value
    panel.close()
