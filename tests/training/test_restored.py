"""The model of a saved run is built from what its trainer wrote, or refused in one sentence."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.training.conftest import LiveRun
from tests.training.test_resume import train
from workbench.base.errors import RunError
from workbench.recipes.recipe import Recipe
from workbench.store.folder import read_json, write_json
from workbench.training.restored import restore


@pytest.mark.parametrize("data", [None, 3, {}, {"vocabulary": None}, {"vocabulary": {"size": 5}}])
def test_without_its_vocabulary_a_run_cannot_be_restored(
    tiny: Recipe, live: Callable[[Recipe], LiveRun], data: object
) -> None:
    run = live(tiny)
    train(run, stop_at=1)
    assert restore(run.folder)[1].layers == tiny.architecture.layers
    write_json(run.folder.environment, read_json(run.folder.environment) | {"data": data})
    with pytest.raises(RunError, match="does not say with which vocabulary the run trained"):
        restore(run.folder)
