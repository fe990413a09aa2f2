"""The table of runs: what the folders say, and nothing kept that they no longer say."""

from __future__ import annotations

import gc
import shutil
import threading
import time
import weakref
from pathlib import Path

from workbench.runs.folder import RunFolder, write_json
from workbench.runs.state import write_state
from workbench.ui.runs_table import SHOWN, RunsTable


def make_run(root: Path, number: int, **state: object) -> RunFolder:
    """A run folder as another process would leave it."""
    folder = RunFolder(root / f"20260101-{number:06d}-run-abcdef-0000")
    folder.path.mkdir(parents=True)
    write_json(folder.recipe, {"name": f"<b>run {number}</b>"})
    write_state(folder, **{"status": "finished", **state})
    return folder


def test_rows_say_what_the_folders_say(tmp_path: Path) -> None:
    make_run(tmp_path, 1, step=7, progress=0.5, loss=6.25, message="done")
    make_run(tmp_path, 2, status="failed", error="the disk is full", message="writing")
    table = RunsTable(tmp_path, refresh_seconds=0)
    newest, oldest = table.rows
    assert (newest["status"], newest["message"], newest["loss"]) == ("failed", "the disk is full", None)
    assert (oldest["name"], oldest["step"], oldest["loss"], oldest["progress"]) == ("<b>run 1</b>", 7, 6.25, 0.5)


def test_a_run_that_should_be_alive_and_is_not_is_lost(tmp_path: Path) -> None:
    make_run(tmp_path, 1, status="running")
    assert RunsTable(tmp_path, refresh_seconds=0).rows[0]["status"] == "lost"


def test_no_folder_is_no_runs(tmp_path: Path) -> None:
    table = RunsTable(tmp_path / "missing", refresh_seconds=0)
    assert table.rows == []
    assert table.complaint == ""


def test_nothing_new_sends_nothing(tmp_path: Path) -> None:
    folder = make_run(tmp_path, 1)
    table = RunsTable(tmp_path, refresh_seconds=0)
    sent: list[int] = []
    table.observe(lambda _change: sent.append(1), names="rows")
    table.refresh()
    assert sent == []
    write_state(folder, step=8)
    table.refresh()
    assert sent == [1]


def test_a_deleted_run_is_no_longer_selected(tmp_path: Path) -> None:
    kept, gone = make_run(tmp_path, 1), make_run(tmp_path, 2)
    table = RunsTable(tmp_path, refresh_seconds=0)
    table.selected = [gone.id, kept.id]
    assert [run.id for run in table.chosen()] == [gone.id, kept.id]
    shutil.rmtree(gone.path)
    table.refresh()
    assert table.selected == [kept.id]


def test_thousands_of_runs_are_not_all_read(tmp_path: Path) -> None:
    for number in range(SHOWN + 5):
        make_run(tmp_path, number)
    table = RunsTable(tmp_path, refresh_seconds=0)
    assert len(table.rows) == SHOWN
    assert table.rows[0]["name"] == f"<b>run {SHOWN + 4}</b>"


def followers() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "workbench-runs"}


def test_the_thread_sees_other_processes_runs_and_ends_with_the_table(tmp_path: Path) -> None:
    before = followers()
    table = RunsTable(tmp_path, refresh_seconds=0.02)
    (own,) = followers() - before
    make_run(tmp_path, 1)
    deadline = time.monotonic() + 10
    while not table.rows and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(table.rows) == 1
    table.close()
    own.join(5)
    assert not own.is_alive()
    gc.collect()


def test_a_closed_table_is_collected(tmp_path: Path) -> None:
    table = RunsTable(tmp_path, refresh_seconds=0)
    trace = weakref.ref(table)
    table.close()
    del table
    gc.collect()
    assert trace() is None
