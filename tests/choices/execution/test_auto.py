"""Executions that plan: what they refuse, what a forecast says of them, and calibrations that fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from workbench.base.errors import RecipeError
from workbench.choices.execution import autotune
from workbench.choices.execution.autotune import calibrate, remembered
from workbench.choices.execution.native import NativeEngine
from workbench.recipes.recipe import Recipe

both_kinds = pytest.mark.parametrize("kind", ["auto", "memory"])


@pytest.fixture(autouse=True)
def _nothing_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path))


@both_kinds
def test_problems_are_those_of_the_native_engine(kind: str) -> None:
    with pytest.raises(RecipeError, match=r"3 rows do not divide data.batch_size 32"):
        Recipe(execution={"kind": kind, "micro_batch_size": 3})
    with pytest.raises(RecipeError, match="no CUDA device"):
        Recipe(execution={"kind": kind, "device": "cuda"}).engine()


@both_kinds
def test_without_a_plan_a_forecast_prices_the_defaults_and_says_so(kind: str) -> None:
    engine = Recipe(execution=kind).engine()
    assert isinstance(engine, NativeEngine)
    assert engine.mode == Recipe().engine().mode
    assert f"execution '{kind}' measures its knobs when the run starts, 30 s at most" in engine.assumptions()[0]


def test_what_is_given_by_hand_stays() -> None:
    engine = Recipe(execution={"kind": "auto", "threads": 1, "micro_batch_size": 8, "layers_every": 3}).engine()
    assert (engine.mode.threads, engine.rows) == (1, 8)
    assert engine.recipe.execution.layers_every == 3


@pytest.mark.process
def test_a_calibration_that_never_ends_gives_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autotune, "SECONDS", 0.0)
    monkeypatch.setattr(autotune, "GRACE_SECONDS", 0.01)
    recipe = Recipe(execution="auto")
    found = calibrate(recipe, lambda line: None)
    assert found.knobs == {}
    assert found.text == "the native engine's defaults: no step ended within 0 s of calibration"
    # The next run tries again.
    assert remembered(recipe) is None


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """``failing("echo why >&2")`` -> calibrations carry out this line of shell instead, and fail."""

    def fail(line: str) -> None:
        interpreter = tmp_path / "python"
        interpreter.write_text(f"#!/bin/sh\n{line}\nexit 1\n")
        interpreter.chmod(0o755)
        monkeypatch.setattr(autotune.sys, "executable", str(interpreter))

    return fail


@pytest.mark.process
def test_a_calibration_that_fails_says_why(failing: Callable[[str], None]) -> None:
    failing("echo 'no such unit' >&2")
    found = calibrate(Recipe(execution="auto"), lambda line: None)
    assert found.note == "the calibration failed (no such unit)"


@pytest.mark.process
def test_a_recipe_may_be_longer_than_a_command_line(failing: Callable[[str], None]) -> None:
    """Of a corpus of many files, each named."""
    failing("wc -c >&2")
    data = {"kind": "files", "paths": tuple(f"{'a' * 100}/{number}.txt" for number in range(2000))}
    found = calibrate(Recipe(data=data, execution="auto"), lambda line: None)
    assert int(found.note.removeprefix("the calibration failed (").removesuffix(")")) > 200_000
