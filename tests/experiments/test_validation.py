"""Checks before a launch: where recipes come from, and how many runs train at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.experiments.race.conftest import tiny
from workbench.base.errors import RecipeError
from workbench.experiments.validation import at_once, recipe_of
from workbench.launchers.queue.queue_folder import OFF, QUEUE_VARIABLE
from workbench.launchers.queue.settings import physical_cores, write_settings
from workbench.recipes.recipe import Recipe

__all__ = ["tiny"]


def test_as_many_as_the_queue_has_cores_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(QUEUE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    for cores, threads, runs in ((1, 1, 1), (6, 1, 6), (6, 2, 3), (2, 4, 1), (99, 1, 8), (6, 0, 1)):
        write_settings(tmp_path, {"cores": cores})
        assert at_once([threads, min(threads, 1)]) == runs, (cores, threads)


def test_without_a_queue_as_many_as_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(QUEUE_VARIABLE, OFF)
    assert at_once([1]) == physical_cores()


def test_arms_as_texts(tiny: Recipe, tmp_path: Path) -> None:
    assert recipe_of("fast:depth.kind=progressive_drop,optimizer.lr=1e-3").depth.kind == "progressive_drop"
    edited = recipe_of('fast:data.batch_size={"kind": "linear", "start": 4, "end": 8},optimizer.lr=1e-3')
    assert (edited.data.most_rows, edited.optimizer.lr) == (8, 1e-3)
    assert recipe_of(str(tiny.save(tmp_path / "mine.json"))) == tiny
    with pytest.raises(RecipeError, match="did you mean 'fast'"):
        recipe_of("fsat")
    with pytest.raises(RecipeError, match="got 3"):
        recipe_of(3)  # type: ignore[arg-type]
