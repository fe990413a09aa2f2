"""A forecast beside what a run really took, and why it was missed."""

from __future__ import annotations

import doctest
from dataclasses import replace

import pytest

import workbench.plots.forecast_compared as module
from workbench.plots.forecast_compared import beside_line, compared
from workbench.plots.forecast_facts import MEASURED_SPEED
from workbench.store.measured import memory_for_training
from workbench.store.origin import Origin

from .ahead import FOUND


def test_examples() -> None:
    assert doctest.testmod(module).failed == 0


def test_forecast_beside_a_run_that_ended(view) -> None:
    rows = {row.name: row for row in compared(FOUND, view)}
    assert list(rows) == ["parameters", "steps", "tokens/s", "training time", "memory for training"]
    assert rows["parameters"].ratio_words == rows["steps"].ratio_words == "as forecast"
    # The synthetic run: 200 steps of 4,096 tokens at 8,000 a second.
    assert rows["tokens/s"].off == pytest.approx(8192 / 8000 - 1)
    assert rows["training time"].measured == "1 min 42 s"
    assert rows["training time"].ratio_words == "102%"
    assert rows["training time"].note == "within the band of 1 min 20 s to 2 min 5 s"
    assert rows["memory for training"].measured == "-"
    assert "not measured" in rows["memory for training"].note


def test_what_was_measured_stands_beside_the_forecast_and_what_that_assumed(view, empty) -> None:
    rows = compared(FOUND, view)
    assert beside_line(rows, view) == (
        "took 1 min 42 s at 8,000 tokens/s; forecast 1 min 40 s at 8,192, from speeds measured on the machine"
    )
    running = replace(view, status="running")
    assert beside_line(rows, running) == "now 8,000 tokens/s; forecast 8,192, from speeds measured on the machine"
    assert beside_line(rows, replace(view, status="paused")).startswith("paused at 8,000 tokens/s; forecast 8,192")
    assert beside_line(rows, running, 1).endswith("from speeds measured on the machine"), "the run itself"
    assert beside_line(rows, running, 2).endswith("from speeds measured on the machine; 2 runs train on it now")
    nothing = beside_line(compared(FOUND, empty), replace(empty, status="running"))
    assert nothing == "forecast 8,192 tokens/s, from speeds measured on the machine; not measured yet"


def test_the_time_of_a_run_that_was_stopped_is_not_what_it_took(view) -> None:
    state = {**view.state, "status": "stopped", "step": 100, "seconds": 51.2, "progress": 0.5}
    stopped = replace(view, status="stopped", state=state)
    rows = compared(FOUND, stopped)
    assert beside_line(rows, stopped).startswith("stopped, would have taken 1 min 42 s at 8,000 tokens/s; forecast")
    assert "present" not in rows[3].note
    early = compared(FOUND, replace(view, status="stopped", state={**state, "progress": 0.01}))
    assert beside_line(early, stopped) == f"stopped at 8,000 tokens/s; forecast 8,192, {MEASURED_SPEED}"


def test_memory_is_what_training_added(view) -> None:
    known = replace(view, environment={**view.environment, "memory_before_gib": 0.2})
    assert memory_for_training(known) == pytest.approx(1.0)
    row = compared(FOUND, known)[-1]
    assert (row.measured, row.off) == ("1.0 GiB", pytest.approx(0.5))


def test_a_run_that_goes_on_is_judged_by_its_pace(view) -> None:
    half = replace(
        view, status="running", evaluations={},
        state={**view.state, "progress": 0.5, "step": 100, "seconds": 64.0, "tokens_per_second": 6400.0},
    )  # fmt: skip
    rows = {row.name: row for row in compared(FOUND, half)}
    assert rows["steps"].measured == "200"
    assert rows["training time"].measured == "2 min 8 s"
    assert rows["training time"].note == "outside the band of 1 min 20 s to 2 min 5 s, at the present pace"
    early = replace(half, state={**half.state, "progress": 0.01})
    rows = {row.name: row for row in compared(FOUND, early)}
    assert (rows["training time"].measured, rows["training time"].ratio_words) == ("-", "-"), "too early to tell"
    assert rows["tokens/s"].off == pytest.approx(8192 / 6400 - 1)


def test_a_fork_is_judged_by_what_it_trains_itself(view) -> None:
    """200 of 300 steps, of which 100 came with the checkpoint: half of its own, in the 32 s since then."""
    fork = replace(
        view, status="running", evaluations={}, recipe={**view.recipe, "budget": {"amount": 300, "unit": "steps"}},
        state={**view.state, "progress": 2 / 3, "step": 200, "seconds": 532.0},
        origin=Origin("run-0", 100, seconds=500.0),
    )  # fmt: skip
    rows = {row.name: row for row in compared({**FOUND, "after_step": 100}, fork)}
    assert (rows["steps"].measured, rows["training time"].measured) == ("200", "1 min 4 s")
    # One that was kept by an earlier version is of the whole recipe, and so is what it stands beside.
    rows = {row.name: row for row in compared(FOUND, fork)}
    assert (rows["steps"].measured, rows["training time"].measured) == ("300", "13 min")


def test_a_run_that_said_nothing(empty) -> None:
    assert {row.measured for row in compared(FOUND, empty)} == {"-"}
