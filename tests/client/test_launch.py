"""Launching: at once, whole or not at all, and every wrong request answered before anything is written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.conftest import SmallDisk
from tests.run_folders import processes_of
from tests.tiny_runs import tiny_recipe
from workbench.base.errors import RecipeError, RunError
from workbench.client.launch import launch, unused_name
from workbench.client.run import Run
from workbench.client.run_list import runs
from workbench.launchers.create import create
from workbench.recipes.recipe import Recipe
from workbench.store.find import run_ids
from workbench.store.folder import RunFolder
from workbench.store.labels import label


@pytest.mark.process
def test_two_launches_of_one_recipe_are_two_runs_at_once(corpus: Path, root: Path) -> None:
    recipe = tiny_recipe(corpus, steps=1_000_000)
    first = launch(recipe, runs_dir=root, name="first")
    second = launch(recipe, runs_dir=root)
    assert {run.status for run in (first, second)} <= {"starting", "running"}, "nobody waits for either"
    assert first.id != second.id
    assert {run.id for run in runs(root)} == {first.id, second.id}
    assert Recipe.load(first.folder.recipe) == recipe.with_(name="first")
    assert first.recipe.hash == second.recipe.hash == recipe.hash
    assert json.loads(first.folder.launched.read_text())["handle"]["pid"] in {
        process.pid for process in processes_of(root)
    }
    assert sorted(path.name for path in root.iterdir()) == sorted([first.id, second.id])


@pytest.mark.process
def test_an_id_is_launched_once(corpus: Path, root: Path) -> None:
    first = launch(tiny_recipe(corpus), runs_dir=root, run_id="20260101-000000-mine-s0")
    assert first.folder.path == root / "20260101-000000-mine-s0"
    with pytest.raises(RunError, match=r"there is a run '20260101-000000-mine-s0' in .* already"):
        launch(tiny_recipe(corpus), runs_dir=root, run_id=first.id)
    with pytest.raises(RunError, match="not of the form"):
        launch(tiny_recipe(corpus), runs_dir=root, run_id="../mine")
    assert [path.name for path in root.iterdir()] == [first.id]


@pytest.mark.parametrize(("on", "said"), [("loacl", "did you mean 'local'"), ("mars", "inline, local")])
def test_an_unknown_place_is_refused(corpus: Path, root: Path, on: str, said: str) -> None:
    with pytest.raises(RunError, match=said):
        launch(tiny_recipe(corpus), on=on, runs_dir=root)
    assert not root.exists()


@pytest.mark.parametrize(
    ("priority", "said"),
    [("high", "priority: 'high' is not a whole number"), (1.5, "not a whole number"), (True, "not a whole number"),
     (10**400, "priority is beyond"), (1001, "priority 1001 is beyond")],
)  # fmt: skip
def test_a_priority_that_is_none_is_refused_before_there_is_a_run(
    corpus: Path, root: Path, priority: object, said: str
) -> None:
    with pytest.raises(RunError, match=said):
        launch(tiny_recipe(corpus), runs_dir=root, priority=priority)  # type: ignore[arg-type]
    assert not root.exists() or run_ids(root) == []


def test_what_this_machine_cannot_carry_out_is_refused_before_there_is_a_run(corpus: Path, root: Path) -> None:
    recipe = tiny_recipe(corpus).with_(execution={"threads": 1000})
    cores = os.cpu_count() or 1
    with pytest.raises(RecipeError, match=rf"execution\.threads: 1,000 threads, .* {cores} cores; use 1\.\.{cores}"):
        launch(recipe, runs_dir=root)
    if not torch.cuda.is_available():
        with pytest.raises(RecipeError, match=r"execution\.precision: fp16 needs a CUDA device"):
            launch(tiny_recipe(corpus).with_(execution={"device": "auto", "precision": "fp16"}), runs_dir=root)
    assert list(root.iterdir()) == []
    assert Recipe(**recipe.to_dict()) == recipe, "made on a larger machine, it still opens here"


@pytest.mark.parametrize("recipe", ["fast", {"name": "fast"}])
def test_what_is_no_recipe_is_refused(recipe: object, root: Path) -> None:
    with pytest.raises(RecipeError, match=r"launch takes a Recipe, got .*presets\.get"):
        launch(recipe, runs_dir=root)  # type: ignore[arg-type]
    assert not root.exists() or not list(root.iterdir())


@pytest.mark.process
def test_text_that_will_not_be_read_is_named(corpus: Path, root: Path, tmp_path: Path) -> None:
    mixed, said = tmp_path / "mixed", list[str]()
    mixed.mkdir()
    (mixed / "a.jsonl").write_text('{"text": "' + "some words that are read " * 2000 + '"}\n')
    (mixed / "b.txt").write_text("words that are not")
    recipe = tiny_recipe(corpus).with_(data={"paths": (str(mixed),), "order": "curriculum"})
    with pytest.raises(RunError, match="on: unknown value"):
        launch(recipe, "nowhere", root, say=said.append)
    assert said == [], "not before it is known that there will be a run"
    launch(recipe, runs_dir=root, say=said.append).stop()
    assert any(line.startswith("data.paths: of '") and "not 1 other (b.txt)" in line for line in said)
    assert any(line.startswith("data.order: all rows are open after 1,000,000 tokens") for line in said)


def test_weights_that_are_no_checkpoint_are_refused_and_nothing_stays(corpus: Path, root: Path) -> None:
    with pytest.raises(RecipeError, match=r"initial: '.*step-6' is no checkpoint .*there is no such folder"):
        launch(tiny_recipe(corpus), runs_dir=root, initial=root / "step-6")
    with pytest.raises(RecipeError, match=rf"initial: '{__file__}' is no checkpoint .*Not a directory"):
        launch(tiny_recipe(corpus), runs_dir=root, initial=__file__)
    assert list(root.iterdir()) == []


def test_what_a_killed_launch_left_goes_with_a_later_one(root: Path) -> None:
    def refuses(draft: RunFolder) -> Recipe:
        raise RunError("no recipe")

    old, present = (root / f".new-{name}" for name in ("old", "present"))
    for draft in (old, present):
        draft.mkdir(parents=True)
    os.utime(old, (0, 0))
    with pytest.raises(RunError, match="no recipe"):
        create(root, refuses)
    assert list(root.iterdir()) == [present]


def test_a_name_must_fit(corpus: Path, root: Path) -> None:
    with pytest.raises(RecipeError, match="name"):
        launch(tiny_recipe(corpus), runs_dir=root, name="x" * 100)
    assert not root.exists()


def test_a_runs_folder_that_is_a_file_is_said(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot take a new run"):
        launch(tiny_recipe(corpus), runs_dir=tmp_path / "file")


def test_a_full_disk_is_said_and_nothing_half_written_stays(
    corpus: Path, small_disk: Callable[[str], SmallDisk]
) -> None:
    disk = small_disk("40k")
    with pytest.raises(RunError, match=r"No space left.*free some space"):
        launch(tiny_recipe(corpus), runs_dir=disk.path)
    assert list(disk.path.iterdir()) == []


@pytest.mark.process
def test_a_supervisor_that_cannot_start_is_a_failed_run(
    corpus: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", str(root / "python"))
    with pytest.raises(RunError, match="could not be started"):
        launch(tiny_recipe(corpus), runs_dir=root)
    (run,) = runs(root)
    assert isinstance(run, Run)
    assert run.status == "failed"
    assert "could not be started" in run.state.error


@pytest.mark.process
def test_runs_of_one_preset_tell_themselves_apart(corpus: Path, root: Path) -> None:
    recipe = tiny_recipe(corpus, steps=1, name="Ein Lauf 7")
    names = [launch(recipe, runs_dir=root).name for _ in range(2)]
    label(next(iter(runs(root))).folder, name="Ein Lauf 9")
    names += [launch(each, runs_dir=root).name for each in (recipe, recipe.with_(name="Ein Lauf 9"))]
    assert names == ["Ein Lauf 7", "Ein Lauf 2", "Ein Lauf 2", "Ein Lauf 3"]
    assert launch(recipe, runs_dir=root, name="Ein Lauf 7").name == "Ein Lauf 7", "a name that is given stands"
    assert len(unused_name("x" * 80, root)) == 80
