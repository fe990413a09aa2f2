"""Presets and runs as sources of recipes: a thousand runs are listed without opening one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jupyter.live import run_folder
from workbench import presets
from workbench.base.errors import RecipeError, RunError
from workbench.jupyter.compose.sources import LISTED, about, preset_of, recipe_of, run_label, run_sources, title_of


def test_a_thousand_runs_are_listed_without_opening_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(LISTED + 5):
        (tmp_path / f"20260131-{number // 60:04d}{number % 60:02d}-run-0a1b2c-3d4e").mkdir()
    monkeypatch.setattr("builtins.open", lambda *_: pytest.fail("a file was opened"))
    monkeypatch.setattr(Path, "read_text", lambda *_: pytest.fail("a file was read"))
    found = run_sources(tmp_path)
    assert len(found) == LISTED
    assert found[0] == ("run:20260131-001644-run-0a1b2c-3d4e", "run · 2026-01-31 00:16:44 UTC")
    assert found == sorted(found, reverse=True)


def test_what_the_table_knows_of_a_run_is_said_with_it(tmp_path: Path) -> None:
    names = [
        "20260131-081501-mine-s0-c0cb4199fa",
        "20260131-081500-mine-s0-c0cb4199fb",
        "20260131-081459-old-0a1b2c-3d4e",
    ]
    for name in names:
        (tmp_path / name).mkdir()
    rows = [
        {"id": names[0], "name": "mine seed 0", "status": "failed", "step": 7},
        {"id": names[1], "name": "mine seed 0 at 0.5x", "status": "stopped", "step": 0},
    ]
    assert [words for _, words in run_sources(tmp_path, rows)] == [
        "mine seed 0 · 2026-01-31 08:15:01 UTC · failed",
        "mine seed 0 at 0.5x · 2026-01-31 08:15:00 UTC · stopped at step 0",
        "old · 2026-01-31 08:14:59 UTC",
    ]


def test_nothing_to_list(tmp_path: Path) -> None:
    assert run_sources(tmp_path / "absent") == []


def test_words() -> None:
    assert run_label("20260131-081500-a-b-c-0a1b2c-3d4e") == "a-b-c · 2026-01-31 08:15:00 UTC"
    assert run_label("by-hand") == "by-hand"
    assert run_label("20260131-081500-baseline-s0-c0cb4199fa") == "baseline seed 0 · 2026-01-31 08:15:00 UTC"
    assert title_of("run:20260131-081500-baseline-s0-c0cb4199fa") == "run baseline seed 0"
    assert title_of("run:20260131-081500-a-b-c-0a1b2c-3d4e") == "run a-b-c"
    assert title_of("fast") == "preset fast"
    assert about("run:by-hand") == "recipe of run by-hand"


@pytest.mark.parametrize("name", presets.names())
def test_a_preset_is_explained_in_one_plain_line(name: str) -> None:
    assert len(about(name)) > 20
    assert not set(about(name)) & set("`\n:") - {":"}
    assert ":func:" not in about(name)


def test_the_recipe_of_a_run(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "by-hand", name="mine")
    assert recipe_of("run:by-hand", tmp_path).name == "mine"
    assert recipe_of("pld") == presets.get("pld")
    folder.recipe.write_text("{")
    with pytest.raises(RecipeError, match="not JSON"):
        recipe_of("run:by-hand", tmp_path)
    with pytest.raises(RunError, match="no run"):
        recipe_of("run:gone", tmp_path)
    with pytest.raises(RunError, match="no run"):
        recipe_of("run:../../etc", tmp_path)
    with pytest.raises(RecipeError, match="did you mean 'pld'"):
        recipe_of("plb")


def test_a_recipe_that_is_a_preset_is_called_so() -> None:
    assert [preset_of(presets.get(name)) for name in ("fast", "lans_two_phase")] == ["fast", "lans_two_phase"]
    assert preset_of(presets.fast().with_(seed=7)) is None
    assert preset_of(presets.fast().with_(name="mine")) is None
