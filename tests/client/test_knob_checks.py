"""A misspelt knob of a fork is named at once; what may be right is left to who knows all choices."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from workbench.base.errors import RecipeError
from workbench.base.fields import flatten
from workbench.client.knob_checks import check_spelling
from workbench.recipes.recipe import Recipe
from workbench.store.folder import RunFolder, write_json


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    write_json((folder := RunFolder(tmp_path)).recipe, Recipe(name="parent").to_dict())
    return folder


@pytest.mark.parametrize(
    ("edit", "meant"),
    [
        ("optimizer.lrr=1", "optimizer.lr"), ("optimiser.lr=1", "optimizer.lr"), ("optimzer=lans", "optimizer"),
        ("data.bach_size=8", "data.batch_size"), ("bugdet=9 steps", "budget"), ("sead=3", "seed"),
    ],
)  # fmt: skip
def test_a_misspelt_knob_is_named_with_what_was_meant(folder: RunFolder, edit: str, meant: str) -> None:
    path = edit.partition("=")[0]
    with pytest.raises(RecipeError) as error:
        check_spelling(folder, ["name=mine", edit])
    assert str(error.value) == f"{path}: this run has no such knob; did you mean {meant}?"


@pytest.mark.parametrize(
    "edits",
    [
        [], ["optimizer.lr=0.1", "budget=400 steps", "execution.threads=2"], ["optimizer=lans", "optimizer.lrr=1"],
        ["optimizer.kind=lans", "optimizer.schedule.lrr=1"], ["nonsense=1"], ["optimizer={}"],
    ],
)  # fmt: skip
def test_what_may_be_right_is_let_through(folder: RunFolder, edits: list[str]) -> None:
    check_spelling(folder, edits)


def test_every_knob_of_a_recipe_is_one(folder: RunFolder) -> None:
    for path in [*(fields := Recipe().to_dict()), *flatten(fields)]:
        check_spelling(folder, [f"{path}=1"])


def test_a_recipe_that_cannot_be_read_judges_nobody(tmp_path: Path) -> None:
    check_spelling(RunFolder(tmp_path), ["optimizer.lr=0.1"])


@pytest.mark.process
def test_it_loads_no_torch(folder: RunFolder) -> None:
    code = (
        "import sys; from pathlib import Path; from workbench.store.folder import RunFolder; "
        "from workbench.client.knob_checks import check_spelling\n"
        f"try: check_spelling(RunFolder(Path({str(folder.path)!r})), ['optimizer.lrr=1'])\n"
        "except ValueError as error: print('torch' in sys.modules, error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "False optimizer.lrr: this run has no such knob; did you mean optimizer.lr?\n"
