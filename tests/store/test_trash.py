"""Deleted runs: out of every list, back as they were, never a live one, and forks live on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workbench.base.errors import RunError
from workbench.client.run import Run
from workbench.client.run_list import runs
from workbench.store.folder import RunFolder
from workbench.store.state import take_lock, write_state
from workbench.store.trash import delete, empty, restore, trash_folder, trashed


@pytest.fixture
def ended(folder: RunFolder) -> RunFolder:
    write_state(folder, status="finished", step=7)
    return folder


def test_a_deleted_run_is_in_no_list_and_comes_back_as_it_was(ended: RunFolder) -> None:
    root = ended.path.parent
    gone = delete(ended)
    assert gone.path == root / ".trash" / ended.id
    assert runs(root) == []
    assert trashed(root) == [gone]
    with pytest.raises(RunError, match=f"was deleted; `workbench restore {ended.id}` brings it back"):
        Run(ended.id, root)
    assert restore(ended.id[:12], root) == ended
    assert [run.state.step for run in runs(root)] == [7]
    assert trashed(root) == []
    Run(ended).delete()
    assert trashed(root) == [gone]


@pytest.mark.parametrize("where", ["{root}/.trash/{id}", "{root}/{id}", "{root}/../runs/.trash/{beginning}"])
def test_restores_by_folder_whatever_the_runs_folder_is(ended: RunFolder, where: str, tmp_path: Path) -> None:
    root = tmp_path / "runs"
    root.mkdir()
    delete(RunFolder(ended.path.rename(root / ended.id)))
    path = where.format(root=root, id=ended.id, beginning=ended.id[:12])
    assert restore(path, tmp_path / "other").path == root / ended.id
    assert trashed(root) == []


def test_a_live_run_stays(ended: RunFolder) -> None:
    write_state(ended, status="running")
    lock = take_lock(ended)
    with pytest.raises(RunError, match=f"alive and cannot be deleted; stop it first .*workbench stop {ended.id}"):
        delete(ended)
    os.close(lock)
    assert ended.path.exists()
    # Lost: it says that it runs, but nobody trains it.
    delete(ended)
    assert not ended.path.exists()


def test_nothing_is_overwritten(ended: RunFolder) -> None:
    root = ended.path.parent
    delete(ended)
    ended.path.mkdir()
    write_state(ended, status="failed")
    with pytest.raises(RunError, match=r"a run of the same id in .* already"):
        restore(ended.id, root)
    with pytest.raises(RunError, match=r"a run of the same id in .* already"):
        delete(ended)
    assert Run(ended).status == "failed"
    assert [folder.id for folder in trashed(root)] == [ended.id]


def test_the_trash_is_emptied_of_runs_alone(ended: RunFolder, tmp_path: Path) -> None:
    assert empty(tmp_path) == 0
    delete(ended)
    (trash_folder(tmp_path) / "Not a run").mkdir()
    assert empty(tmp_path) == 1
    assert [path.name for path in trash_folder(tmp_path).iterdir()] == ["Not a run"]
    with pytest.raises(RunError, match="`workbench trash` lists them"):
        restore(ended.id, tmp_path)


def test_runs_do_not_leave_through_a_link(ended: RunFolder, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    trash_folder(tmp_path).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunError, match="is a link"):
        delete(ended)
    assert ended.path.exists()


def test_a_folder_that_cannot_be_moved_says_why(ended: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(RunError, match=r"cannot be moved to .*Permission denied"):
        delete(ended)
    assert Run(ended).status == "finished"
