"""Runs whose model and data are objects of a program: who may start them, and what is said to whoever may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.base.errors import RunError
from workbench.store.folder import RunFolder, write_json
from workbench.store.in_process import IN_PROCESS, is_in_process, refuse_elsewhere, way_on
from workbench.store.state import write_state


@pytest.mark.parametrize(("on", "inside"), [(IN_PROCESS, True), ("local", False), (None, False)])
def test_it_is_told_by_what_launched_it(on: str | None, inside: bool, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "a-run")
    folder.path.mkdir()
    if on is not None:
        write_json(folder.launched, {"on": on})
    assert is_in_process(folder) is inside
    said = "workbench.accelerate(model, loader, resume='a-run')" if inside else "workbench resume a-run"
    assert way_on(folder, "stopped") == f"; it left no checkpoint: `{said}` starts its recipe from the beginning"
    assert way_on(folder, "finished") == ""
    if inside:
        with pytest.raises(
            RunError, match="cannot be forked here: its model and data were objects of a Python program"
        ):
            refuse_elsewhere(folder, "be forked")
    else:
        refuse_elsewhere(folder, "be forked")


def test_a_finished_one_is_not_said_to_go_on(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "a-run")
    folder.path.mkdir()
    write_json(folder.launched, {"on": IN_PROCESS})
    write_state(folder, status="finished")
    with pytest.raises(RunError, match=r"Run\('a-run'\)\.load_into\(model\)` loads its weights, with which") as error:
        refuse_elsewhere(folder, "be forked")
    assert "resume" not in str(error.value)
