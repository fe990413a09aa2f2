"""Inline runs leave nothing behind when the process that launched them is killed."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from tests.launchers.test_local import launch_elsewhere
from tests.run_folders import processes_of
from tests.tiny_runs import tiny_recipe, wait_until
from workbench.client.run import Run
from workbench.store.folder import read_object


@pytest.mark.process
def test_inline_runs_end_with_their_launcher(corpus: Path, root: Path, tmp_path: Path) -> None:
    """One is forked from a process that is held ready, one has new processes."""
    recipe = tiny_recipe(corpus, steps=100_000).save(tmp_path / "recipe.json")
    launcher, ids = launch_elsewhere(recipe, root, "inline", ("on", "off"))
    runs = [Run(each, root) for each in ids]
    supervisors = [psutil.Process(read_object(run.folder.launched)["pid"]) for run in runs]
    assert [each.ppid() == launcher.pid for each in supervisors] == [False, True]
    wait_until(lambda: len(processes_of(root)) == 4, 30, "supervisors and trainers")
    launcher.kill()
    # Before anybody has looked at its end, too.
    wait_until(lambda: not processes_of(root), 3, "the end of all")
    launcher.communicate()
    for run in runs:
        assert run.status == "failed"
        assert "process that launched this run has ended" in run.state.error
