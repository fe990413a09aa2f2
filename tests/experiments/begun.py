"""Experiments of a tiny recipe in a folder of their own, and runs of theirs that train nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.run_folders import kill_processes_of, may_start
from tests.tiny_runs import tiny_recipe
from workbench.client.run import Run
from workbench.experiments.open import KINDS
from workbench.recipes.recipe import Recipe
from workbench.store.folder import RunFolder
from workbench.store.state import write_state


@pytest.fixture
def root(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A runs folder; whatever still trains in it, or drives an experiment beside it, is ended with the test."""
    folder = tmp_path / "runs"
    yield folder
    if may_start(request):
        # Drivers first, or they would go on launching.
        kill_processes_of(*(held.kind.root(folder) for held in KINDS.values()), folder)


@pytest.fixture
def tiny(corpus: Path) -> Recipe:
    return tiny_recipe(corpus, steps=200)


class Waiting:
    """Stands for ``launch`` where only what is launched, and when, is looked at: runs wait until they are ended."""

    def __init__(self) -> None:
        self.launched: list[Any] = []
        self.going: list[Any] = []

    def __call__(self, recipe: Recipe, *, runs_dir: str, run_id: str) -> Run:
        folder = RunFolder(Path(runs_dir) / run_id)
        folder.path.mkdir(parents=True)
        write_state(folder, status="queued", host="another machine")
        self.note(folder, recipe)
        return Run(folder)

    def note(self, folder: RunFolder, recipe: Recipe) -> None:
        """Keep what was launched."""
        self.launched.append(recipe)
        self.going.append((folder, recipe))
