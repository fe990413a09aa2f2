"""The forecast as a user asks for it: exact counts, units, bands, cost, data for pictures."""

from __future__ import annotations

import inspect
import json
from dataclasses import replace
from pathlib import Path

import pytest

import workbench as wb
from tests.forecasting.machine_rates import RATES
from workbench import presets
from workbench.base.text import count
from workbench.choices.data.prepare import NAME, _subject, prepare
from workbench.choices.execution import memory_fit
from workbench.cli.forecasting import summary
from workbench.forecasting import trace as tracing
from workbench.forecasting.forecast import BAND, Forecast, forecast, unusual
from workbench.ops.remembered import FOLDER, remember
from workbench.recipes.recipe import Recipe
from workbench.training.assemble import assemble


@pytest.fixture
def recipe(learnable: list[str]) -> Recipe:
    return presets.fast().with_assignments(learnable)


def ahead(recipe: Recipe, price: float | None = None) -> Forecast:
    return forecast(recipe, rates=RATES, price_per_hour=price)


@pytest.mark.parametrize(
    "assignments",
    [
        [],
        ["architecture.tied=false", "architecture.ffn=swiglu"],
        ['architecture={"kind": "post_ln", "layers": 3, "width": 48, "heads": 2}'],
        ['architecture={"layers": 8}', "depth=stacking"],
        ['architecture={"layers": 4}', "depth=grow_width"],
        ['architecture={"kind": "transformers", "model": "bert", "layers": 2, "width": 32, "heads": 2}'],
        ["objective=causal",
         'architecture={"kind": "transformers", "model": "gpt2", "layers": 2, "width": 32, "heads": 2}'],
    ],
)  # fmt: skip
def test_parameters_are_those_of_the_finished_model(recipe: Recipe, assignments: list[str]) -> None:
    recipe = recipe.with_assignments(assignments)
    found = ahead(recipe)
    made = assemble(recipe.with_(depth="full"), prepare(recipe.data, say=lambda line: None))
    assert found.parameters == made.parameters
    assert found.memory["weights"] == 4 * made.parameters


def test_it_is_told_in_a_few_lines(recipe: Recipe) -> None:
    ahead = forecast(recipe, rates=RATES)
    assert len(repr(ahead)) < 1000
    assert {"schedules", "layers"} <= ahead.to_dict().keys()
    assert "seconds=60.0," in repr(replace(ahead, seconds=60.00000000000006))


def test_its_call_names_its_options() -> None:
    assert wb.forecast is forecast
    assert "price_per_hour" in inspect.signature(wb.forecast).parameters


def test_numbers_agree_with_each_other(recipe: Recipe) -> None:
    found = ahead(recipe.with_(budget="50 steps"), price=3.6)
    assert (found.steps, found.tokens) == (50, 50 * 16 * 32)
    assert found.flops == pytest.approx(found.flops_per_token * found.tokens)
    assert found.tokens_per_second == pytest.approx(found.tokens / found.seconds)
    assert found.cost == pytest.approx(found.seconds / 1000)
    assert found.seconds_low < found.seconds < found.seconds_high
    assert found.seconds_high == pytest.approx(found.seconds * (1 + BAND[False]))
    assert set(found.memory) == {"weights", "gradients", "optimizer", "activations", "logits", "heap"}
    assert found.memory_bytes == sum(found.memory.values()), "on a CPU nothing takes another's place"
    assert ahead(recipe).cost is None


def test_it_says_whose_rates_it_used_and_what_compiling_takes(recipe: Recipe) -> None:
    found = ahead(recipe)
    assert (found.machine, found.calibrated) == (RATES.device, RATES.date)
    assert found.compile_seconds == 0.0
    assert ahead(recipe.with_(execution={"compile": True})).compile_seconds > 10


def test_a_text_that_is_not_prepared_yet_is_said_without_reading_it(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path))
    monkeypatch.setattr("workbench.forecasting.calibration.calibrated", lambda *_: RATES)
    found = forecast(recipe)
    assert found.preparation == "and once, reading the text and learning its vocabulary: 1 to 3 minutes"
    assert found.preparation_seconds == 120.0
    assert found.preparation in summary(recipe, found)
    assert not list(tmp_path.glob("tokens/*")), "nothing was prepared"
    assert ahead(recipe).preparation == "", "nobody knows the cache of another machine"
    prepare(recipe.data, say=lambda line: None)
    assert forecast(recipe).preparation == ""
    assert forecast(recipe.with_(data={"batch_size": 8})).preparation == ""
    # Such text was prepared: how long that took is known.
    other = recipe.with_(data={"heldout_fraction": 0.2})
    remember(tmp_path / FOLDER, NAME, _subject(other.data), {"seconds": 200.0}, 0.0)
    assert forecast(other).preparation.endswith("its vocabulary: it took 3 min 20 s the last time")


def test_a_changed_knob_runs_no_model_where_it_changes_none(recipe: Recipe) -> None:
    # Measured for each shape, attention would be another one where the machine's moment says so.
    recipe = recipe.with_(execution={"attention": "plain"})
    ahead(recipe)
    before = tracing._linear_trace.cache_info().misses
    for change in (
        {"data": {"batch_size": 24}}, {"architecture": {"layers": 9}}, {"optimizer": {"kind": "lans"}},
        {"budget": {"amount": 77}}, {"execution": {"micro_batch_size": 4}}, {"depth": "progressive_drop"},
        {"data": {"batch_size": {"kind": "linear", "start": 2, "end": 16}}},
    ):  # fmt: skip
        ahead(recipe.with_(**change))
    assert tracing._linear_trace.cache_info().misses == before
    ahead(recipe.with_(architecture={"width": 72}))
    assert tracing._linear_trace.cache_info().misses == before + 1


def test_a_budget_in_seconds_is_kept(recipe: Recipe) -> None:
    found = ahead(recipe.with_(budget="2 min"))
    assert found.seconds == found.seconds_low == found.seconds_high == pytest.approx(120)


def test_schedules_and_layers_are_data(recipe: Recipe) -> None:
    found = ahead(recipe.with_(depth="progressive_drop"))
    assert len(found.schedules["progress"]) == len(found.schedules["optimizer.lr"]) == len(found.layers["forward"])
    assert found.schedules["progress"] == sorted(found.schedules["progress"])
    assert found.schedules["objective.mask_rate"][0] > found.schedules["objective.mask_rate"][-1]
    assert len(found.layers["backward"][0]) == recipe.architecture.layers
    assert json.loads(json.dumps(found.to_dict()))["parameters"] == found.parameters


def test_a_run_that_takes_the_free_memory_is_forecast_with_what_is_free(
    recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.forecasting.calibration.calibrated", lambda *_: RATES)
    full = recipe.with_(execution={"micro_batch_size": "auto"})
    monkeypatch.setattr(memory_fit, "free_bytes", lambda device: 2**40)
    much = forecast(full)
    parts = {name: size for name, size in much.memory.items() if name != "heap"}
    room = sum(parts.values()) - (parts["activations"] + parts["logits"]) // 2
    monkeypatch.setattr(memory_fit, "free_bytes", lambda device: room)
    little = forecast(full)
    assert little.memory_bytes < much.memory_bytes
    assert little.device_memory_bytes == RATES.memory_bytes
    assert f"{room / 2**30:.3g} GiB that are free now" in little.notes[0]
    assert "GiB that the device has in all" in ahead(full).notes[0], "of another machine nobody knows"
    limited = forecast(full.with_(execution={"memory_gib": 4.0}))
    assert "free" not in limited.notes[0], "a limit decides"


def test_what_is_not_seen_is_said(recipe: Recipe) -> None:
    adaptive = recipe.with_(data={"batch_rule": "simigrad"}, execution={"micro_batch_size": 8})
    assert any("simigrad" in note for note in ahead(adaptive).notes)


def test_averaged_weights_take_memory(recipe: Recipe) -> None:
    found = ahead(recipe.with_(optimizer={"average": 0.99}))
    assert found.memory["optimizer"] - ahead(recipe).memory["optimizer"] == 4 * found.parameters


def test_passes_over_the_text_are_said(recipe: Recipe) -> None:
    tokens = prepare(recipe.data, say=lambda line: None).train.tokens
    many = recipe.with_(budget={"amount": 20 * tokens, "unit": "tokens"})
    assert f"training makes about 20 passes over {count(tokens)} tokens" in ahead(many).notes
    half = many.with_(data={"tokens_limit": tokens // 2})
    assert any(note.startswith("training makes about 40 passes") for note in ahead(half).notes)
    far = recipe.with_(data={"order": "curriculum"}, budget="30 steps")
    assert any("all rows are open after 1,000,000 tokens" in note for note in ahead(far).notes)
    assert not any("data.order" in note for note in ahead(recipe).notes)


def test_a_rate_that_learns_nothing_is_said(recipe: Recipe) -> None:
    far = ahead(recipe.with_(optimizer={"lr": 90.0}))
    assert far.unusual == "optimizer.lr 90 is 90,000 times what adamw begins with (0.001)"
    assert far.notes[0] == far.unusual
    assert ahead(recipe).unusual == ""


def test_a_time_of_many_years_is_said(recipe: Recipe) -> None:
    path, why = unusual(recipe.with_(budget="1e9 h")) or ("", "")
    assert (path, why.split(",")[0]) == ("budget.amount", "3.6e+12 seconds are 114")
    assert "years" in why
    assert unusual(recipe.with_(budget="8000 h")) is None
    assert unusual(recipe.with_(budget="1e9 steps")) is None, "how long that takes, its forecast says"


def test_the_module_answers_when_it_is_called(recipe: Recipe) -> None:
    assert wb.forecast(recipe, rates=RATES) == ahead(recipe)


def test_a_forecast_of_phases_shows_the_schedules_that_all_of_them_have(recipe: Recipe) -> None:
    found = ahead(recipe.with_(objective="phases"))
    assert "optimizer.lr" in found.schedules
    assert "objective.further_weight" not in found.schedules
