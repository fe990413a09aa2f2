"""An inline run leaves nothing behind when the process that launched it is killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs.conftest import processes_of
from tests.runs.launchers.test_local import launch_elsewhere
from tests.runs.tiny import tiny_recipe, wait_until
from workbench.runs.run import Run


@pytest.mark.process
def test_an_inline_run_ends_with_its_launcher(corpus: Path, root: Path, tmp_path: Path) -> None:
    recipe = tiny_recipe(corpus, steps=100_000).save(tmp_path / "recipe.json")
    launcher, run_id = launch_elsewhere(recipe, root, "inline")
    run = Run(run_id, root)
    wait_until(lambda: len(processes_of(root)) == 2, 30, "supervisor and trainer")
    launcher.kill()
    launcher.communicate()
    wait_until(lambda: not processes_of(root), 3, "the end of both")
    assert run.status == "failed"
    assert "process that launched this run has ended" in run.state.error
