"""The committed run folder and recipe of schema 1: they open, resume and fork, whatever this version writes itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import workbench as wb
from tests.packages.example import KEPT, RUN, STEPS, lay_text

pytestmark = pytest.mark.process


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A copy whose text lies where its recipe says."""
    lay_text()
    return Path(shutil.copytree(KEPT, tmp_path / "example"))


def test_it_is_small() -> None:
    assert sum(path.stat().st_size for path in KEPT.rglob("*") if path.is_file()) < 200_000


def test_it_opens_resumes_and_forks(example: Path) -> None:
    recipe = wb.Recipe.load(example / "recipe.json")
    run = wb.runs(example / "runs")[0]
    assert (run.id, run.status, recipe.name) == (RUN, "stopped", "example")
    assert run.result["recipe"]["architecture"] == recipe.model_dump(mode="json")["architecture"]
    stopped = run.state.step
    assert 0 < stopped < STEPS
    fork = run.fork(name="fork", budget=f"{stopped + 5} steps")
    run.resume()
    assert run.wait()["steps"] == STEPS
    assert fork.wait()["steps"] == stopped + 5
    assert run.result["train_loss"] < 4.0, "it learns the kettles by heart"
