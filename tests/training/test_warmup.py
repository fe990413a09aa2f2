"""Compiling ahead meets every shape of work that training will, and leaves no trace in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from workbench.choices.progress import progress_at
from workbench.recipes.recipe import Recipe
from workbench.training import warmup
from workbench.training.batch_size import LOOK_AHEAD
from workbench.training.loop import Training
from workbench.training.warmup import _variants, compile_ahead, usual_time

Build = Callable[..., Training]


@pytest.mark.parametrize("optimizer", ["adamw", "lans"])
def test_training_is_the_same_with_and_without(tiny: Recipe, build: Build, optimizer: str) -> None:
    recipe = tiny.with_(optimizer=optimizer, depth="progressive_drop")
    warm, cold = build(recipe), build(recipe)
    assert compile_ahead(warm) > 0
    assert warm.progress == cold.progress
    assert all(parameter.grad is None for parameter in warm.model.parameters())
    assert not warm.optimizer.state
    for _ in range(2):
        warm.step()
        cold.step()
    for one, other in zip(warm.model.parameters(), cold.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_one_pass_when_nothing_changes_shape(tiny: Recipe, build: Build) -> None:
    assert len(list(_variants(build(tiny)))) == 1
    # Dropped layers are skipped, not compiled anew: whatever the draw, every layer runs here.
    plans = [plan for plan, *_ in _variants(build(tiny.with_(depth="progressive_drop")))]
    assert [plan.runs for plan in plans] == [(True, True, True)]


def test_two_numbers_of_labels_stand_for_all(tiny: Recipe, build: Build) -> None:
    shape = {"kind": "linear", "start": 0.5, "end": 0.1}
    recipe = tiny.with_(objective={"mask_rate": shape})
    rates = [recipe.objective.labelled_fraction(progress) for _, progress, *_ in _variants(build(recipe))]
    # From the second number on the dimension is dynamic: more passes would only take time.
    assert len({round(rate * recipe.data.sequence_length) for rate in rates}) == len(rates) == 2


@pytest.mark.parametrize("budget", ["640 steps", "3200 tokens", "64 s"])
def test_points_lie_within_the_budget(tiny: Recipe, budget: str) -> None:
    whole = tiny.with_(budget=budget).budget
    fractions = [progress_at(whole, point / LOOK_AHEAD).fraction for point in range(LOOK_AHEAD)]
    assert fractions == pytest.approx([point / LOOK_AHEAD for point in range(LOOK_AHEAD)])


def test_how_long_compiling_takes_is_remembered_by_model(
    tiny: Recipe, build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compiled(**changes: object) -> Training:
        training = build(tiny.with_(**changes))
        training.engine.compiled = True
        return training

    first = compiled()
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path))
    # What is remembered of it is tested here; compiling itself takes its time where runs are tested.
    monkeypatch.setattr(warmup, "_meet_graphs", lambda training: None)
    monkeypatch.setattr(warmup, "probe_instructions", lambda folder: None)
    assert usual_time(first) == "one to three minutes, longer beside other work"
    compile_ahead(first)
    assert usual_time(compiled(seed=3, budget="30 steps", optimizer={"lr": 1e-2})) == "it took 0 s the last time"
    assert usual_time(compiled(architecture={"width": 64})) == "one to three minutes, longer beside other work"
