"""Trials on a real, small recipe: what is counted in three layers holds for all of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from workbench.autotune.trials import Trials
from workbench.choices.data.prepare import prepare
from workbench.choices.execution.memory_fit import measured
from workbench.recipes.recipe import Recipe
from workbench.training.assemble import assemble
from workbench.training.loop import Training


@pytest.fixture(scope="module")
def deep(tiny: Recipe) -> Recipe:
    return tiny.with_(architecture={"layers": 5}, execution={"kind": "memory", "threads": 1})


@pytest.fixture(scope="module")
def trials(deep: Recipe) -> Iterator[Trials]:
    found = Trials(deep, time.monotonic() + 60)
    yield found
    found.close()


@pytest.mark.parametrize("knobs", [{}, {"recompute": "layers"}, {"recompute": "attention"}])
def test_what_a_pass_keeps_is_that_of_the_whole_model(trials: Trials, deep: Recipe, knobs: dict[str, Any]) -> None:
    kept, parameters = trials.kept(knobs)
    native = deep.with_(execution={"kind": "native", "compile": False, "threads": 1, **knobs})
    whole = Training(native, assemble(native, prepare(deep.data, say=lambda line: None)), None)
    expected = measured(whole.model, whole.rehearse)
    whole.close()
    assert trials.layers == 3
    assert parameters == sum(p.numel() for p in whole.model.parameters())
    assert kept.at(16) == pytest.approx(expected.at(16), rel=0.02)


def test_recomputation_keeps_less(trials: Trials) -> None:
    assert trials.kept({"recompute": "layers"})[0].at(16) < 0.7 * trials.kept({})[0].at(16)


def test_refusals_are_the_recipes_own(trials: Trials) -> None:
    assert trials.refusal({"recompute": "layers"}) == ""
    assert "do not divide data.batch_size 16" in trials.refusal({"micro_batch_size": 3})


def test_a_step_of_many_passes_takes_longer(trials: Trials) -> None:
    # One row at a time: sixteen passes of a sixteenth each. Far from any noise.
    assert trials.time({"micro_batch_size": 1}) > 2.0


def test_rows_divide_those_of_the_run_and_fill_no_more_than_a_trial(tiny: Recipe) -> None:
    many = tiny.with_(data={"batch_size": 512}, execution={"kind": "auto", "threads": 1})
    found = Trials(many, time.monotonic() + 60)
    found.close()
    assert found.rows <= 4096 // 32
    assert 512 % found.rows == 0


def test_eager_seconds_count_the_budget(tiny: Recipe) -> None:
    short = Trials(tiny.with_(execution={"kind": "auto", "threads": 1}), time.monotonic() + 60)
    long = Trials(
        tiny.with_(execution={"kind": "auto", "threads": 1}, budget={"amount": 20_000}), time.monotonic() + 60
    )
    timed = Trials(tiny.with_(execution={"kind": "auto", "threads": 1}, budget="60 s"), time.monotonic() + 60)
    ratio = (long.eager_seconds() or 0.0) / (short.eager_seconds() or 1.0)
    assert 100 < ratio < 10_000  # a thousand times the steps, each timed by itself
    assert timed.eager_seconds() is None
    for each in (short, long, timed):
        each.close()
